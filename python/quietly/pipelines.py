"""What stands before a model in a pipeline of scikit-learn, and whether it learns from the rows.

A certificate covers what the model asks of the rows. A transformer that was fitted on them before releases means, categories or components
without noise. Only steps that scikit-learn fits together with the model can be seen: what was fitted by hand before looks like any other table.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from . import ledger
from .errors import ParameterError, UncoveredStepError

_FITS = ("fit", "fit_transform", "fit_predict", "_fit")

# Transformers whose parameters can say all, and when they do. Class names are those of scikit-learn.
_SAID: dict[str, Callable[[Any], bool]] = {
    "OneHotEncoder": lambda step: _has_categories(step),
    "OrdinalEncoder": lambda step: _has_categories(step),
    "SimpleImputer": lambda step: step.strategy == "constant" and not step.add_indicator and step.keep_empty_features,
    "PolynomialFeatures": lambda step: True,
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
    # What it holds was fitted by hand before, and is not fitted again.
    "FrozenEstimator": lambda step: True,
}

_INSTEAD = {
    "StandardScaler": "use quietly.StandardScaler, or leave it out: models scale within their budget",
    "OneHotEncoder": 'give it categories=[...] and handle_unknown="ignore", or leave it out: a schema lists the values of a column',
    "OrdinalEncoder": 'give it categories=[...] and handle_unknown="use_encoded_value", or leave it out: a schema lists the values of a column',
    "SimpleImputer": 'take strategy="constant" and keep_empty_features=True without add_indicator, or leave it out: a schema says what becomes of missing cells',
    "SplineTransformer": 'give it knots as an array, or leave it out: expand="splines" needs no rows',
}
_OTHERWISE = "leave it out: models scale within their budget, and a schema says how columns become numbers"


def not_covered(estimator: Any) -> list[str]:
    """What the certificate of a fit that happens now must say of the steps before; refuses them unless ``public_steps`` insists."""
    if not isinstance(estimator.public_steps, bool):
        raise ParameterError(f"public_steps must be True or False, but is of type {type(estimator.public_steps).__name__}")
    if ledger.is_free() or estimator.epsilon == float("inf"):
        return []
    steps, functions = _steps_before()
    # A function learns nothing between fits, but can mix the rows that it is given.
    functions.extend(what for step in steps for what in functions_of(step))
    said = [f"what {what} before the model computes from more than one row" for what in dict.fromkeys(functions)]
    names = list(dict.fromkeys(name for step in steps for name in learners(step)))
    if not names:
        return said
    if estimator.public_steps:
        return [*said, f"what {', '.join(names)} before the model learnt from the rows"]
    first = names[0]
    learn = "learns" if len(names) == 1 else "learn"
    raise UncoveredStepError(
        f"{', '.join(names)} before the model {learn} from the rows without noise, and no certificate covers that. This fit spent nothing. "
        f"{first}: {_INSTEAD.get(first, _OTHERWISE)}. If what is learnt is public, public_steps=True on the estimator insists, and the "
        "certificate says that it is not covered"
    )


def learners(step: Any) -> Iterator[str]:
    """The names of all parts of a step that learn from rows without noise."""
    return (type(part).__name__ for part in _parts(step) if _learns(part))


def functions_of(step: Any) -> Iterator[str]:
    """The functions in a step, which see all rows at once."""
    from sklearn.compose import ColumnTransformer

    for part in _parts(step, whole=True):
        if type(part).__name__ == "FunctionTransformer":
            yield "a FunctionTransformer"
        if isinstance(part, ColumnTransformer) and any(callable(columns) for _, _, columns in part.transformers):
            yield "a function that chooses columns for a ColumnTransformer"


def scalers_before() -> Iterator[Any]:
    """The fitted scalers of this package that stand before whatever is being fitted now."""
    parts = (part for step in _steps_before()[0] for part in _parts(step))
    return (part for part in parts if type(part).__module__ == "quietly.scaler" and hasattr(part, "schema_"))


def _parts(step: Any, whole: bool = False) -> Iterator[Any]:
    """All that a step is made of; with ``whole``, the compositions themselves, too."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if step is None or isinstance(step, str):
        # "passthrough" and "drop".
        return
    if isinstance(step, Pipeline):
        parts = [part for _, part in step.steps]
    elif isinstance(step, FeatureUnion):
        parts = [part for _, part in step.transformer_list]
    elif isinstance(step, ColumnTransformer):
        parts = [*(part for _, part, _ in step.transformers), step.remainder]
    else:
        yield step
        return
    if whole:
        yield step
    for part in parts:
        yield from _parts(part, whole)


def _learns(step: Any) -> bool:
    from sklearn.utils import get_tags

    kind = type(step)
    if any(parent.__module__.startswith("quietly.") for parent in kind.__mro__):
        return False
    if kind.__module__.startswith("sklearn.") and kind.__name__ in _SAID:
        return not _SAID[kind.__name__](step)
    try:
        return bool(get_tags(step).requires_fit)
    except Exception:
        # What does not say that it learns nothing is taken to learn.
        return True


def _has_categories(step: Any) -> bool:
    # With these two, frequencies of the rows decide which categories are merged.
    counts = step.min_frequency is not None or step.max_categories is not None
    # With this one, a category that is not listed raises an error, which quotes it.
    raises = step.handle_unknown == "error"
    return not isinstance(step.categories, str) and not counts and not raises


def _steps_before() -> tuple[list[Any], list[str]]:
    """The steps that are fitted before whatever is being fitted now, in every pipeline around it; and functions of its target."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline

    found: list[Any] = []
    functions: list[str] = []
    looked: set[int] = set()
    for frame in _frames():
        if frame.f_code.co_name not in _FITS:
            continue
        owner = frame.f_locals.get("self")
        if not isinstance(owner, (Pipeline, TransformedTargetRegressor)) or id(owner) in looked:
            continue
        # The frame nearest to the model knows the place; `fit` of the same pipeline stands above `_fit`.
        looked.add(id(owner))
        if isinstance(owner, TransformedTargetRegressor):
            found.append(owner.transformer)
            if owner.func is not None:
                functions.append("the function of a TransformedTargetRegressor")
        else:
            last = len(owner.steps) - 1
            place = frame.f_locals.get("step_idx", last) if frame.f_code.co_name == "_fit" else last
            found.extend(step for _, step in owner.steps[:place])
    return found, functions


def _frames() -> Iterator[FrameType]:
    """The frames of this thread, the nearest first; in a thread of joblib's, then those of the threads that wait for it."""
    own = list(_stack(sys._getframe(1)))
    yield from own
    if any(map(_is_joblib, own)):
        here = threading.get_ident()
        for thread, frame in sys._current_frames().items():
            stack = list(_stack(frame)) if thread != here else []
            if any(map(_is_joblib, stack)):
                yield from stack


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_joblib(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("joblib.")
