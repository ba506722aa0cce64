"""Pictures of what a model has learnt, by matplotlib, which is only needed here.

A model is public once it is released, and so are its pictures: none of them reads a table.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import PackageError
from .progress import in_notebook

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .comparison import Comparison
    from .estimators import _Private

# More cannot be read.
MOST_FEATURES = 40
MOST_COLUMNS = 24
MOST_MAPS = 8
LEAST_SHARE = 0.005
DRAWN = 10
NO_BARS = "no error bars: how far noise moves a weight depends on the rows"


def _subplots(*shape: int, size: tuple[float, float], sharey: bool = False) -> tuple["Figure", Any]:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise PackageError("plots need matplotlib, which is not installed: pip install matplotlib") from None
    figure, axes = pyplot.subplots(*shape, figsize=size, squeeze=False, sharey=sharey, layout="constrained")
    if in_notebook():
        # What a cell returns is drawn by itself; open figures would be drawn once more.
        pyplot.close(figure)
    return figure, axes


def model(estimator: "_Private", spread: np.ndarray | None, caption: str) -> "Figure":
    """What a fitted estimator has learnt: its weights, or the curves of a network or of an additive regression."""
    if estimator._fitted().has_bends:
        return bends(estimator)
    return curves(estimator) if estimator._fitted().is_network else coefficients(estimator, spread, caption)


def coefficients(estimator: "_Private", spread: np.ndarray | None, caption: str) -> "Figure":
    """A bar for every weight, beside each other for every class. ``spread`` is the length of the error bars."""
    fitted = estimator._fitted()
    weights = np.atleast_2d(estimator.coef_)
    outputs, width = weights.shape
    names = fitted.features
    if len(names) != width:
        names = [f"made feature {k + 1}" for k in range(width)]
    chosen = np.sort(np.argsort(-np.abs(weights).max(axis=0), kind="stable")[:MOST_FEATURES])
    figure, axes = _subplots(size=(7.0, 1.6 + 0.28 * len(chosen) * max(1.0, 0.5 * outputs)))
    axis = axes[0, 0]
    places = np.arange(len(chosen), dtype=float)
    height = 0.8 / outputs
    labels = [str(label) for label in estimator.classes_] if outputs > 1 else [None]
    for k, label in enumerate(labels):
        bars = None if spread is None else spread.reshape(outputs, width)[k, chosen]
        at = places + (k - 0.5 * (outputs - 1)) * height
        axis.barh(at, weights[k, chosen], height=height, xerr=bars, label=label, capsize=2)
    axis.set_yticks(places, [_plain(names[k]) for k in chosen])
    axis.invert_yaxis()
    axis.axvline(0.0, color="black", linewidth=0.8)
    axis.set_xlabel("weight of the feature as the model sees it, within [-1, 1]")
    more = f"; the {len(chosen)} largest of {width}" if width > len(chosen) else ""
    axis.set_title(f"{type(estimator).__name__}, epsilon {_epsilon(estimator)}{more}\n{caption}", fontsize="medium")
    if outputs > 1:
        axis.legend(fontsize="small")
    return figure


def curves(estimator: "_Private") -> "Figure":
    """What each column does to the answer of a network, in the column's own units."""
    what, outputs, columns = estimator._fitted().curves()
    columns = columns[:MOST_COLUMNS]
    across = min(4, len(columns))
    down = -(-len(columns) // across)
    figure, axes = _subplots(down, across, size=(1.0 + 2.6 * across, 1.2 + 2.2 * down), sharey=True)
    for axis in axes.flat[len(columns) :]:
        axis.remove()
    for column, axis in zip(columns, axes.flat):
        names = column.get("names")
        if names is None:
            low, high = column["range"]
            places = np.linspace(low, high, len(column["means"][0]))
        else:
            places = np.arange(len(names))
            axis.set_xticks(places, [_plain(name) for name in names], rotation=90 if len(names) > 4 else 0)
        if not outputs:
            for setting in column["settings"][:DRAWN]:
                axis.plot(places, setting, color="C0", linewidth=0.6, alpha=0.5)
        for k, mean in enumerate(column["means"]):
            label = _plain(outputs[k]) if outputs else None
            axis.plot(places, mean, color=f"C{k}", linewidth=2, marker="o" if names else None, label=label)
        hidden = f" ({column['hidden']} more values)" if column["hidden"] else ""
        axis.set_title(_plain(column["name"]) + hidden, fontsize="medium")
    note = "" if outputs else "; thin: other columns set otherwise"
    title = f"{type(estimator).__name__}, epsilon {_epsilon(estimator)}: {_plain(what)}{note}"
    figure.suptitle(title, fontsize="medium")
    if outputs:
        axes.flat[0].legend(fontsize="small")
    return figure


def bends(estimator: "_Private") -> "Figure":
    """What each column adds to the prediction of an additive regression, and what strong pairs of them add, in their own units."""
    columns, pairs = estimator._fitted().bends()
    columns = columns[:MOST_COLUMNS]
    pairs = [pair for pair in pairs[:MOST_MAPS] if pair["share"] >= LEAST_SHARE]
    count = len(columns) + len(pairs)
    across = min(4, count)
    down = -(-count // across)
    figure, axes = _subplots(down, across, size=(1.0 + 2.6 * across, 1.2 + 2.2 * down))
    for axis in axes.flat[count:]:
        axis.remove()
    low = min(min(column["adds"] + column["linear"]) for column in columns)
    high = max(max(column["adds"] + column["linear"]) for column in columns)
    room = 0.05 * (high - low) or 1.0
    for column, axis in zip(columns, axes.flat):
        axis.plot(column["at"], column["linear"], color="C1", linewidth=0.8)
        axis.plot(column["at"], column["adds"], color="C0", linewidth=2)
        axis.set_ylim(low - room, high + room)
        axis.set_title(f"{_plain(column['name'])} ({100 * column['share']:.1f} %)", fontsize="medium")
    most = max((abs(value) for pair in pairs for value in pair["adds"]), default=1.0)
    for pair, axis in zip(pairs, axes.flat[len(columns) :]):
        grid = np.reshape(pair["adds"], (len(pair["first"]), len(pair["second"]))).T
        axis.pcolormesh(pair["first"], pair["second"], grid, cmap="RdBu_r", vmin=-most, vmax=most, shading="nearest")
        names = " and ".join(_plain(name) for name in pair["names"])
        axis.set_title(f"{names} ({100 * pair['share']:.1f} %)", fontsize="small")
    title = f"{type(estimator).__name__}, epsilon {_epsilon(estimator)}: what columns add; thin: the linear part"
    figure.suptitle(title, fontsize="medium")
    return figure


def comparison(found: "Comparison") -> "Figure":
    """Error against epsilon, one line for every estimator, with quartiles; dashed without noise."""
    figure, axes = _subplots(size=(7.0, 4.5))
    axis = axes[0, 0]
    for k, name in enumerate(dict.fromkeys(row["name"] for row in found.rows)):
        rows = sorted((row for row in found.rows if row["name"] == name), key=lambda row: row["epsilon"])
        x = [row["epsilon"] for row in rows]
        middle = np.array([row["error"] for row in rows])
        ends = [middle - [row["error_low"] for row in rows], [row["error_high"] for row in rows] - middle]
        axis.errorbar(x, middle, yerr=ends, color=f"C{k}", marker="o", capsize=3, label=_plain(name))
        plain = found.without_noise[name]
        axis.axhline(plain, color=f"C{k}", linestyle="--", linewidth=1, label=f"{_plain(name)}, without noise")
    axis.set_xscale("log")
    axis.set_xlabel("epsilon")
    axis.set_ylabel(found.measure)
    axis.set_title(f"{found.repeats} splits; bars: quartiles", fontsize="medium")
    axis.legend(fontsize="small")
    return figure


def _epsilon(estimator: "_Private") -> str:
    certificate = estimator.certificate_
    if certificate.epsilon == float("inf"):
        return "inf (NO PRIVACY)"
    return f"{certificate.epsilon:.3g}" + (" (TEST ONLY: fixed seed)" if certificate.test_only else "")


def _plain(text: str) -> str:
    """Text that is not taken for mathematics."""
    return text.replace("$", r"\$")
