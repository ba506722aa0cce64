"""What every parameter of an estimator means, said once: the docstrings of all models are made of these sentences.

The parameters of models are declared in the core, which the command line reads as well; here are those of estimators."""

import inspect
from collections.abc import Iterable
from typing import TypeVar

from ._quietly import parameters, renamed_parameters

# Name: (type and default, what it means).
WORDS = {
    "epsilon": (
        "float, default 1.0",
        "The most that a fit may spend, from 0.001 to 1000. Smaller is more private. ``inf`` is the plain model, without any "
        "privacy, to compare with.",
    ),
    "delta": (
        "float or None, default None",
        "The chance that goes with epsilon, from 1e-12 to 0.5. None takes the largest power of ten that is at most 1 / (10 rows), "
        "and no more than 1e-5. 0 asks for pure epsilon, which some methods have.",
    ),
    "schema": (
        "Schema or None, default None",
        "What is public about the columns. None takes features to lie within [-1, 1], whatever the table holds, and clips them to that.",
    ),
    "rows": (
        "int or None, default None",
        "About how many rows there are; public. None takes the schema's number, or that of the table: then the certificate says so.",
    ),
    "target": (
        "str or None, default None",
        "The name of the column to predict, if y has none. None takes the name of y, or the one column of the schema that X lacks.",
    ),
    "neighbours": (
        '"add-remove" or "replace-one", default "add-remove"',
        "What is protected: whether a unit is in the table at all, or which values it has. Under replace-one the number of "
        "rows is public.",
    ),
    "random_state": (
        "int or None, default None",
        "None takes the operating system's randomness. A whole number from 0 repeats a fit bit by bit, for tests: anyone who knows it "
        "can remove the noise, so the certificate says TEST ONLY.",
    ),
    "n_jobs": (
        "int or None, default None",
        "How many threads work. None, or a number below 1, takes one for every core. It changes no bit of the result.",
    ),
    "verbose": (
        "bool or None, default None",
        "Whether a long fit shows a line with its steps and the time left. None does so in terminals and notebooks only. The line "
        "goes to standard error.",
    ),
    "public_steps": (
        "bool, default False",
        "Whether a pipeline may have steps before the model that learn from the rows without noise, as what they learn is public. The "
        "certificate then says that they are not covered.",
    ),
    "with_mean": ("bool, default True", "Whether the mean is taken away."),
    "with_std": ("bool, default True", "Whether numbers are divided by the standard deviation."),
    "target_range": (
        "(float, float) or None, default None",
        "The least and the largest target, in its own units, if no schema says so; targets beyond are clamped. None is (-1, 1).",
    ),
    "classes": (
        "list or None, default None",
        "All labels, if no schema lists them. None takes those of the table: then the certificate says that they were treated as "
        "public.",
    ),
    "quantile": (
        "float, default 0.5",
        "Which quantile, between 0 and 1: the share of targets that lies below. 0.5 is the median.",
    ),
    "hidden_layer_sizes": (
        "sequence of int or None, default None",
        "Units of every hidden layer, such as (32, 16). None leaves it to the planner.",
    ),
    "clipping_norm": (
        'float, "none" or None, default None',
        'The norm, above 0, that the gradient of a row is clipped to. "none" clips nowhere, where gradients have a bound of their own. None '
        "leaves it to the planner.",
    ),
    "method": (
        'str, default "auto"',
        'How it is fitted: "auto", or a name that ``quietly methods`` lists, such as "full-batch" or "one-pass".',
    ),
}

WORDS = {name: (what, meaning) for name, what, meaning in parameters()} | WORDS

# Old names, and what they are called now.
RENAMED = dict(renamed_parameters())


def renamed(kind: type, names: Iterable[str]) -> str | None:
    """What to say to someone who gives this estimator a parameter by its old name."""
    known = inspect.signature(kind).parameters
    old = sorted(name for name in names if RENAMED.get(name) in known)
    return f"{kind.__name__} has no parameter {old[0]!r}: it is called {RENAMED[old[0]]!r}" if old else None


_Class = TypeVar("_Class", bound=type)


def described(kind: _Class) -> _Class:
    """The same class, with all its parameters explained in its docstring."""
    lines = [kind.__doc__ or "", "", "Parameters", "----------"]
    for name in list(inspect.signature(kind).parameters):
        what, meaning = WORDS[name]
        lines += [f"{name} : {what}", f"    {meaning}"]
    lines += ["", "Attributes", "----------"]
    for name, (what, meaning) in _attributes(kind).items():
        lines += [f"{name} : {what}", f"    {meaning}"]
    kind.__doc__ = "\n".join(lines)
    return kind


def _attributes(kind: type) -> dict[str, tuple[str, str]]:
    fitted = {
        "certificate_": ("Certificate", "What the fit promises, and why."),
        "plan_": ("Plan", "What was planned before any row was read."),
        "n_features_in_": ("int", "How many columns X had."),
        "feature_names_in_": ("array of str", "Their names, if X had any."),
    }
    if hasattr(kind, "transform"):
        del fitted["plan_"]
        fitted["mean_"] = ("array", "The mean of every column, with noise.")
        fitted["scale_"] = ("array", "Its standard deviation, with noise, and never so small that it would be noise alone.")
        fitted["var_"] = ("array", "The square of that.")
        fitted["noise_"] = ("array", "The standard deviation of the noise in every mean.")
        fitted["schema_"] = ("Schema", "What no scaled number lies beyond.")
        return fitted
    if not kind.__name__.startswith("KAN"):
        fitted["coef_"] = ("array", "The weights of the features within [-1, 1], one for every category. ``coef_table()`` has natural units.")
        if kind.__name__ == "AutoRegressor":
            fitted["coef_"] = (fitted["coef_"][0], fitted["coef_"][1] + " Of an additive regression those of its linear part.")
        fitted["intercept_"] = ("float or array", "The weighted sum where all features are 0.")
        fitted["feature_names_out_"] = ("array of str", "The names of the features that ``coef_`` belongs to.")
    if hasattr(kind, "decision_function"):
        fitted["classes_"] = ("array", "The labels, in the order in which they were declared.")
    return fitted
