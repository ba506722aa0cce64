"""How much the privacy costs: error against epsilon, tried on a table that is public."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import train_test_split

from . import ledger, tables
from .errors import DataError, ParameterError, without_cells
from .estimators import _column, _Private

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Noise of one trial must not be that of another.
_SEEDS = 2**48


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` found.

    Attributes
    ----------
    rows : list of dict
        One for every estimator and epsilon: ``name``, ``epsilon``, the median ``error`` with its quartiles ``error_low`` and
        ``error_high``, the median ``score`` of the estimator, and ``spent``, the epsilon of one fit.
    without_noise : dict
        The median error of every estimator without any noise.
    measure : str
        What the error is: the share of wrong classes, or the root mean squared error.
    repeats : int
        How many random splits there were.
    spent : float
        The epsilons of all fits, added up: what this would have cost on a sensitive table.
    """

    rows: list[dict[str, Any]]
    without_noise: dict[str, float]
    measure: str
    repeats: int
    spent: float

    def plot(self) -> "Figure":
        """Error against epsilon, as a matplotlib figure."""
        from . import plots

        return plots.comparison(self)

    def __str__(self) -> str:
        lines = [f"{'epsilon':<9}{'estimator':<28}{self.measure} (quartiles)"]
        for row in self.rows:
            spread = f"{row['error']:.4g} ({row['error_low']:.4g} to {row['error_high']:.4g})"
            lines.append(f"{row['epsilon']:<9g}{row['name']:<28}{spread}")
        lines += [f"{'none':<9}{name:<28}{error:.4g}" for name, error in self.without_noise.items()]
        lines.append(
            f"Every error was computed from the rows, and all fits together spent epsilon {self.spent:.4g}: "
            "on a sensitive table this is NOT private."
        )
        return "\n".join(lines)


def compare(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    epsilons: Iterable[float] = (0.1, 0.3, 1.0, 3.0, 10.0),
    repeats: int = 5,
    test_size: float = 0.2,
    random_state: int | None = None,
) -> Comparison:
    """Fits on random splits of a public table at every epsilon, and tests on the rest.

    For public or made-up tables: errors are exact, and choosing among many of them gives away what none of them does. On a
    sensitive table this is NOT private; the result says what all fits together would have spent.

    Parameters
    ----------
    estimator : estimator, or dict of them by name
        What is fitted. It is cloned; ``epsilon`` and ``rows`` of the clones are set.
    X : table
        A public table: numpy, pandas or polars.
    y : column, or the name of one of X
        What is predicted.
    epsilons : iterable of float, default (0.1, 0.3, 1, 3, 10)
        Budgets to try, each from 0.001 to 1000. The fit without noise always takes part.
    repeats : int, default 5
        How many random splits there are, each with noise of its own.
    test_size : float, default 0.2
        The share of rows, between 0 and 1, that is kept for testing.
    random_state : int or None, default None
        Fixes splits and noise. None takes the operating system's randomness.

    Returns
    -------
    Comparison
        With ``rows``, ``without_noise``, ``spent`` and ``plot()``.
    """
    named = dict(estimator) if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
    try:
        epsilons = [float(epsilon) for epsilon in epsilons]
    except (TypeError, ValueError):
        raise ParameterError("epsilons must be a list of numbers from 0.001 to 1000") from None
    _check(named, X, epsilons, repeats, random_state)
    base = np.random.SeedSequence(random_state).generate_state(1, np.uint64)[0]
    classifies = is_classifier(next(iter(named.values())))
    found: dict[tuple[str, float], list[tuple[float, float, float]]] = {}
    fits = 0
    for split in range(repeats):
        seed = (int(base) + split) % 2**32
        train, test = _split(X, y, test_size, seed)
        for name, one in named.items():
            for epsilon in [*epsilons, np.inf]:
                fits += 1
                noise = None if random_state is None else (int(base) + fits) % _SEEDS
                fitted = _fit(one, epsilon, train, noise)
                found.setdefault((name, epsilon), []).append(_tried(fitted, test, classifies))
    rows = [_row(name, epsilon, found[name, epsilon]) for name in named for epsilon in epsilons]
    return Comparison(
        rows=rows,
        without_noise={name: _row(name, np.inf, found[name, np.inf])["error"] for name in named},
        measure="share of wrong classes" if classifies else "root mean squared error",
        repeats=repeats,
        spent=sum(spent for (_, epsilon), tries in found.items() if epsilon < np.inf for *_, spent in tries),
    )


def spread(estimator: _Private, X: Any, y: Any, *, runs: int) -> np.ndarray:
    """The standard deviation of every weight over so many fits of a public table, each with noise of its own."""
    if isinstance(runs, bool) or not isinstance(runs, (int, np.integer)) or runs < 2:
        raise ParameterError("runs must be a whole number, at least 2")
    weights = []
    for _ in range(runs):
        with ledger.for_free():
            again = clone(estimator).set_params(rows=estimator.plan_.rows, random_state=None).fit(X, y)
        if again.plan_.to_json() != estimator.plan_.to_json():
            raise ParameterError("the public table makes another plan than this model had: give it the same columns and labels")
        weights.append(again.coef_)
    deviations: np.ndarray = np.std(weights, axis=0, ddof=1)
    return deviations


def _check(named: dict[str, Any], X: Any, epsilons: list[float], repeats: Any, random_state: Any) -> None:
    if not named or not all(isinstance(one, _Private) for one in named.values()):
        raise ParameterError("compare takes an estimator of quietly, or a dict of them by name")
    if len({is_classifier(one) for one in named.values()}) > 1:
        raise ParameterError("classifiers and regressions have no error in common: compare them apart")
    if not epsilons or not all(0.001 <= epsilon <= 1000 for epsilon in epsilons):
        raise ParameterError("epsilons must be numbers from 0.001 to 1000; the fit without noise always takes part")
    if isinstance(repeats, bool) or not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise ParameterError("repeats must be a whole number, at least 1")
    if random_state is not None and (not isinstance(random_state, (int, np.integer)) or random_state < 0):
        raise ParameterError("random_state must be None, or a whole number from 0")
    if tables.is_path(X):
        raise DataError("compare splits a table, which must be in memory; `quietly compare` on the command line takes files")


@without_cells
def _split(X: Any, y: Any, test_size: float, seed: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    if isinstance(y, str):
        _column(X, y)
        train, test = train_test_split(X, test_size=test_size, random_state=seed)
        return (train, y), (test, test[y])
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=test_size, random_state=seed)
    return (X_train, y_train), (X_test, y_test)


def _fit(estimator: _Private, epsilon: float, train: tuple[Any, Any], seed: int | None) -> _Private:
    """A fit of public rows, which costs no privacy."""
    rows = len(train[0])
    with ledger.for_free():
        fitted: _Private = clone(estimator).set_params(epsilon=epsilon, rows=rows, random_state=seed).fit(*train)
    return fitted


@without_cells
def _tried(fitted: _Private, test: tuple[Any, Any], classifies: bool) -> tuple[float, float, float]:
    score = float(fitted.score(*test))
    if classifies:
        error = 1.0 - score
    else:
        error = float(np.sqrt(np.mean((fitted.predict(test[0]) - np.asarray(test[1], dtype=float)) ** 2)))
    return error, score, fitted.certificate_.epsilon


def _row(name: str, epsilon: float, tries: list[tuple[float, float, float]]) -> dict[str, Any]:
    errors, scores, spent = (np.array(column) for column in zip(*tries))
    low, middle, high = np.quantile(errors, [0.25, 0.5, 0.75])
    return {
        "name": name,
        "epsilon": epsilon,
        "error": float(middle),
        "error_low": float(low),
        "error_high": float(high),
        "score": float(np.median(scores)),
        "spent": float(spent.max()),
    }
