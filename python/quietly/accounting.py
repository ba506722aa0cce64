"""What a private computation costs, for the scheme that ran: the numbers of ``quietly account`` and ``quietly calibrate``.

>>> from quietly import accounting
>>> lower, upper = accounting.epsilon("poisson", noise=1.0, rate=0.01, steps=1000, delta=1e-5)
>>> 1.82 < lower <= upper < 1.83
True

A scheme is what ran; each takes its dial and some counts (1 where they are left out, a rate must be given):

============  ============  =============================================  ===========================================
scheme        dial          beside it                                      a record takes part
============  ============  =============================================  ===========================================
gaussian      noise         steps                                          in every step
laplace       scale         steps                                          in every step
selection     epsilon_each  steps                                          in every choice
objective     noise         bend, slopes (logistic, one-sign, two-signs,   in the one perturbed objective
                            classes), most, classes, steps
promise                     epsilon_each, delta_each, steps                in something that others have proven
poisson       noise         rate, steps                                    in each step by chance ``rate``
fixed-size    noise         records, batch, steps                          in batches of one size
allocation    noise         steps, select, epochs                          in ``select`` steps of each epoch, at random
shuffle       noise         steps, epochs                                  in one block of each shuffled epoch
tree          noise         steps, epochs                                  in one leaf of each tree
correlated    noise         steps; lambda\\_ or bands; and one of full=True, rate, bins, period (alone or with rate),
                            separation with participations, records with batch
============  ============  =============================================  ===========================================

``noise`` and ``scale`` are over what one record can add. Answers are intervals: the upper end is certified, the lower is what some
tables really leak. Several runs on the same people are a list, each as a dict with its scheme:

>>> runs = [{"scheme": "gaussian", "noise": 5.0}, {"scheme": "poisson", "noise": 1.0, "rate": 0.01, "steps": 1000}]
>>> accounting.epsilon(runs, delta=1e-5)[1] > upper
True
"""

from collections.abc import Mapping, Sequence
from typing import Any

from . import _quietly
from .errors import ParameterError

__all__ = ["calibrate", "curve", "delta", "epsilon"]

Runs = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

_DIALS = {"noise", "scale", "epsilon_each", "delta_each"}
_COUNTS = {"steps", "rate", "records", "batch", "select", "epochs", "bins", "period", "separation", "participations"}
_KNOWN = _DIALS | _COUNTS | {"bend", "slopes", "most", "classes", "lambda", "bands", "full"}


def _run(scheme: str, flags: dict[str, Any]) -> dict[str, Any]:
    # `lambda` is a word of Python's own.
    flags = {name.rstrip("_"): value for name, value in flags.items()}
    if unknown := sorted(set(flags) - _KNOWN):
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}: the dials and counts are {', '.join(sorted(_KNOWN))}")
    return {"scheme": scheme, **flags}


def _runs(scheme: Runs, flags: dict[str, Any]) -> list[dict[str, Any]]:
    if isinstance(scheme, str):
        return [_run(scheme, flags)]
    runs: list[Any] = [scheme] if isinstance(scheme, Mapping) else list(scheme)
    if not all(isinstance(run, Mapping) for run in runs):
        raise ParameterError('a scheme is a name, such as "gaussian", or a list of runs, such as [{"scheme": "gaussian", "noise": 5.0}]')
    if flags:
        raise TypeError(f"unexpected keyword argument {next(iter(flags))!r}: a list of runs says everything itself")
    return [_run(run.get("scheme", ""), {name: value for name, value in run.items() if name != "scheme"}) for run in runs]


def epsilon(scheme: Runs, *, delta: float, neighbours: str = "add-remove", **flags: Any) -> tuple[float, float]:
    """Epsilon at a delta, as (lower, upper)."""
    return _quietly.epsilon(_runs(scheme, flags), neighbours, delta)


def delta(scheme: Runs, *, epsilon: float, neighbours: str = "add-remove", **flags: Any) -> tuple[float, float]:
    """Delta at an epsilon, as (lower, upper)."""
    return _quietly.delta(_runs(scheme, flags), neighbours, epsilon)


def curve(scheme: Runs, *, neighbours: str = "add-remove", **flags: Any) -> list[tuple[float, float]]:
    """(delta, epsilon) pairs, each certified."""
    return _quietly.curve(_runs(scheme, flags), neighbours)


def calibrate(
    scheme: str, *, epsilon: float, delta: float, neighbours: str = "add-remove", **flags: Any
) -> tuple[float, tuple[float, float]]:
    """The dial with the least noise that keeps epsilon at or below what is asked, and the epsilon it has, as (lower, upper).

    >>> noise, (lower, upper) = calibrate("gaussian", steps=10, epsilon=1.0, delta=1e-5)
    >>> 11 < noise < 12 and upper <= 1.0
    True
    """
    return _quietly.calibrate(_run(scheme, flags), neighbours, epsilon, delta)
