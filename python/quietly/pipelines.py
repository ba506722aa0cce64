"""What stands before a model in a pipeline of scikit-learn, and whether it learns from the rows.

A certificate covers what the model asks of the rows. A transformer that was fitted on them before releases means, categories or components
without noise. Only steps that scikit-learn fits together with the model can be seen: what was fitted by hand before looks like any other table.
"""

import sys
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
    "SimpleImputer": lambda step: step.strategy == "constant" and not step.add_indicator,
    "PolynomialFeatures": lambda step: True,
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
}

_INSTEAD = {
    "StandardScaler": "use quietly.StandardScaler, or leave it out: models scale within their budget",
    "OneHotEncoder": 'give it categories=[...] and handle_unknown="ignore", or leave it out: a schema lists the values of a column',
    "OrdinalEncoder": 'give it categories=[...] and handle_unknown="use_encoded_value", or leave it out: a schema lists the values of a column',
    "SimpleImputer": 'take strategy="constant" without add_indicator, or leave it out: a schema says what becomes of missing cells',
    "SplineTransformer": 'give it knots as an array, or leave it out: expand="splines" needs no rows',
}
_OTHERWISE = "leave it out: models scale within their budget, and a schema says how columns become numbers"


def not_covered(estimator: Any) -> list[str]:
    """What the certificate of a fit that happens now must say of the steps before; refuses them unless ``public_steps`` insists."""
    if not isinstance(estimator.public_steps, bool):
        raise ParameterError(f"public_steps must be True or False, but is of type {type(estimator.public_steps).__name__}")
    if ledger.is_free() or estimator.epsilon == float("inf"):
        return []
    steps = _steps_before()
    # A function learns nothing between fits, but can mix the rows that it is given.
    called = any(name == "FunctionTransformer" for step in steps for name in names_of(step))
    said = ["what a FunctionTransformer before the model computes from more than one row"] if called else []
    names = list(dict.fromkeys(name for step in steps for name in learners(step)))
    if not names:
        return said
    if estimator.public_steps:
        return [*said, f"what {', '.join(names)} before the model learnt from the rows"]
    first = names[0]
    learn = "learns" if len(names) == 1 else "learn"
    raise UncoveredStepError(
        f"{', '.join(names)} before the model {learn} from the rows without noise, and no certificate covers that. Nothing was spent. "
        f"{first}: {_INSTEAD.get(first, _OTHERWISE)}. If what is learnt is public, public_steps=True on the estimator insists, and the "
        "certificate says that it is not covered"
    )


def learners(step: Any) -> Iterator[str]:
    """The names of all parts of a step that learn from rows without noise."""
    return (type(part).__name__ for part in _parts(step) if _learns(part))


def names_of(step: Any) -> Iterator[str]:
    """The names of all parts of a step."""
    return (type(part).__name__ for part in _parts(step))


def _parts(step: Any) -> Iterator[Any]:
    """All that a step is made of."""
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
    for part in parts:
        yield from _parts(part)


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


def _steps_before() -> list[Any]:
    """The steps that are fitted before whatever is being fitted now, in every pipeline around it; and transformers of its target."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline

    found: list[Any] = []
    looked: set[int] = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _FITS:
            owner = frame.f_locals.get("self")
            if isinstance(owner, (Pipeline, TransformedTargetRegressor)) and id(owner) not in looked:
                # The frame nearest to the model knows the place; `fit` of the same pipeline stands above `_fit`.
                looked.add(id(owner))
                if isinstance(owner, TransformedTargetRegressor):
                    found.append(owner.transformer)
                else:
                    last = len(owner.steps) - 1
                    place = frame.f_locals.get("step_idx", last) if frame.f_code.co_name == "_fit" else last
                    found.extend(step for _, step in owner.steps[:place])
        frame = frame.f_back
    return found
