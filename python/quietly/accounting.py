"""What a private computation costs, for the scheme that ran: the numbers of ``quietly account`` and ``quietly calibrate``.

>>> from quietly import accounting
>>> lower, upper = accounting.epsilon("poisson", noise=1.0, rate=0.01, steps=1000, delta=1e-5)
>>> 1.82 < lower <= upper < 1.83
True

Schemes and what they take beside ``noise`` (over what one record can add): ``gaussian`` and ``laplace`` (steps), ``poisson`` (rate,
steps), ``fixed-size`` (records, batch, steps), ``allocation`` (steps, select, epochs), ``shuffle`` and ``tree`` (steps, epochs).
Answers are intervals: the upper end is certified, the lower is what some tables really leak.
"""

from typing import Any

from . import _quietly

__all__ = ["calibrate", "curve", "delta", "epsilon"]


def _scheme(scheme: str, neighbours: str, counts: dict[str, Any]) -> dict[str, Any]:
    known = {"noise", "steps", "rate", "records", "batch", "select", "epochs"}
    if unknown := sorted(set(counts) - known):
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}")
    return {"scheme": scheme, "neighbours": neighbours, **counts}


def epsilon(scheme: str, *, noise: float, delta: float, neighbours: str = "add-remove", **counts: Any) -> tuple[float, float]:
    """Epsilon at a delta, as (lower, upper)."""
    return _quietly.epsilon(_scheme(scheme, neighbours, {"noise": noise, **counts}), delta)


def delta(scheme: str, *, noise: float, epsilon: float, neighbours: str = "add-remove", **counts: Any) -> tuple[float, float]:
    """Delta at an epsilon, as (lower, upper)."""
    return _quietly.delta(_scheme(scheme, neighbours, {"noise": noise, **counts}), epsilon)


def curve(scheme: str, *, noise: float, neighbours: str = "add-remove", **counts: Any) -> list[tuple[float, float]]:
    """(delta, epsilon) pairs, each certified."""
    return _quietly.curve(_scheme(scheme, neighbours, {"noise": noise, **counts}))


def calibrate(scheme: str, *, epsilon: float, delta: float, neighbours: str = "add-remove", **counts: Any) -> tuple[float, tuple[float, float]]:
    """The least noise that keeps epsilon at or below what is asked, and the epsilon it has, as (lower, upper)."""
    return _quietly.calibrate(_scheme(scheme, neighbours, counts), epsilon, delta)
