"""What a private computation costs, for the scheme that ran: the numbers of ``quietly account`` and ``quietly calibrate``.

>>> from quietly import accounting
>>> lower, upper = accounting.epsilon("poisson", noise_multiplier=1.0, sampling_rate=0.01, steps=1000, delta=1e-5)
>>> 1.82 < lower <= upper < 1.83
True

A scheme is what ran. Each takes its noise parameter and some counts (1 where they are left out; a sampling rate must be given):

=================  ================  ==========================================  ============================================
scheme             noise parameter   beside it                                   a row takes part
=================  ================  ==========================================  ============================================
gaussian           noise_multiplier  steps                                       in every step
laplace            scale             steps                                       in every step
exponential        epsilon_each      steps                                       in every choice
objective          noise_multiplier  smoothness, derivative (logistic,           in the one perturbed objective
                                     one-sign, two-signs, classes), most,
                                     classes, steps
approximate-dp                       epsilon_each, delta_each, steps             in a mechanism with a proof of its own
poisson            noise_multiplier  sampling_rate, steps                        in each step with probability ``sampling_rate``
fixed-size         noise_multiplier  records, batch, steps                       in batches of one size
random-allocation  noise_multiplier  steps, select, epochs                       in ``select`` steps of each epoch, at random
shuffle            noise_multiplier  steps, epochs                               in one block of each shuffled epoch
tree               noise_multiplier  steps, epochs                               in one leaf of each tree
correlated         noise_multiplier  steps; lambda\\_ or bands; and one of full=True, sampling_rate, bins, period (alone or with
                                     sampling_rate), separation with participations, records with batch
=================  ================  ==========================================  ============================================

``noise_multiplier`` and ``scale`` are over the sensitivity. Answers are intervals: the upper end is certified, the lower is what some
tables really leak. Several runs on the same rows are a list, each as a dict with its scheme:

>>> runs = [{"scheme": "gaussian", "noise_multiplier": 5.0}, {"scheme": "poisson", "noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 1000}]
>>> accounting.epsilon(runs, delta=1e-5)[1] > upper
True
"""

from collections.abc import Mapping, Sequence
from typing import Any

from . import _quietly
from .errors import ParameterError

__all__ = ["calibrate", "curve", "delta", "epsilon"]

Runs = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

_DIALS = {"noise_multiplier", "scale", "epsilon_each", "delta_each"}
_COUNTS = {"steps", "sampling_rate", "records", "batch", "select", "epochs", "bins", "period", "separation", "participations"}
_KNOWN = _DIALS | _COUNTS | {"smoothness", "derivative", "most", "classes", "lambda", "bands", "full"}

# Old names, and what they are called now.
_RENAMED_SCHEMES = {"allocation": "random-allocation", "promise": "approximate-dp", "selection": "exponential"}
_RENAMED = {"bend": "smoothness", "noise": "noise_multiplier", "rate": "sampling_rate", "slopes": "derivative"}


def _run(scheme: str, flags: dict[str, Any]) -> dict[str, Any]:
    if new := _RENAMED_SCHEMES.get(scheme):
        raise ParameterError(f"there is no scheme {scheme!r}: it is called {new!r}")
    # `lambda` is a word of Python's own.
    flags = {name.rstrip("_"): value for name, value in flags.items()}
    if old := sorted(set(flags) & _RENAMED.keys()):
        raise TypeError(f"a scheme has no parameter {old[0]!r}: it is called {_RENAMED[old[0]]!r}")
    if unknown := sorted(set(flags) - _KNOWN):
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}: the dials and counts are {', '.join(sorted(_KNOWN))}")
    return {"scheme": scheme, **flags}


def _runs(scheme: Runs, flags: dict[str, Any]) -> list[dict[str, Any]]:
    if isinstance(scheme, str):
        return [_run(scheme, flags)]
    runs: list[Any] = [scheme] if isinstance(scheme, Mapping) else list(scheme)
    if not all(isinstance(run, Mapping) for run in runs):
        raise ParameterError('a scheme is a name, such as "gaussian", or a list of runs, such as [{"scheme": "gaussian", "noise_multiplier": 5.0}]')
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
    """The noise parameter with the least noise that keeps epsilon at or below the target, and the epsilon it has, as (lower, upper).

    >>> noise, (lower, upper) = calibrate("gaussian", steps=10, epsilon=1.0, delta=1e-5)
    >>> 11 < noise < 12 and upper <= 1.0
    True
    """
    return _quietly.calibrate(_run(scheme, flags), neighbours, epsilon, delta)
