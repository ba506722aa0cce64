"""Whoever types a name of an earlier version reads one sentence with the new one."""

import numpy as np
import pytest

import quietly
from quietly import accounting, errors
from quietly.parameters import RENAMED

KIND = quietly.KANClassifier
X = np.zeros((20, 1))
# In Python a KAN has all parameters whose names changed, but for those of quantile regression and of growth.
PARAMETERS = [(KIND, old) for old in ("basis", "batches", "clip", "degree", "hidden", "noise", "passes", "sampling")]
PARAMETERS += [(quietly.QuantileRegressor, "level")]


def test_every_renamed_parameter_is_tested():
    assert {old for _, old in PARAMETERS} == RENAMED.keys() - {"rate", "theta"}


@pytest.mark.parametrize("kind, old", PARAMETERS, ids=lambda part: part if isinstance(part, str) else part.__name__)
def test_old_parameters_name_the_new_ones(kind, old):
    said = f"{kind.__name__} has no parameter '{old}': it is called '{RENAMED[old]}'"
    works = [
        (TypeError, lambda: kind(**{old: 1})),
        (quietly.ParameterError, lambda: kind().set_params(**{old: 1})),
        (quietly.ParameterError, lambda: quietly.tune(kind(), {old: [1]}, X, X[:, 0])),
        (AttributeError, lambda: getattr(kind(), old)),
    ]
    for error, work in works:
        with pytest.raises(error) as refused:
            work()
        assert str(refused.value) == said


def test_names_that_were_never_there_are_refused_as_ever():
    for kind, name in [(quietly.LinearRegression, "clip"), (quietly.LinearRegression, "rate"), (KIND, "magic")]:
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            kind(**{name: 1})
        with pytest.raises(ValueError, match=f"Invalid parameter '{name}'"):
            kind().set_params(**{name: 1})
        with pytest.raises(AttributeError, match=f"'{kind.__name__}' object has no attribute '{name}'"):
            getattr(kind(), name)


@pytest.mark.parametrize(
    "wishes, said",
    [
        ({"sampler": "bins"}, "sampler must be full-batch, poisson, balls-and-bins, cyclic or fixed-size, but is \"bins\""),
        ({"sampler": "full"}, "sampler must be full-batch, poisson, balls-and-bins, cyclic or fixed-size, but is \"full\""),
        ({"average": "half"}, "average must be last, last-half, all or random, but is \"half\""),
        ({"average": "lot"}, "average must be last, last-half, all or random, but is \"lot\""),
        ({"clipping_norm": "never"}, "none"),
        ({"noise_correlation": "bands=4"}, "banded=J"),
    ],
    ids=str,
)
def test_old_keywords_are_refused_with_the_new_ones(wishes, said):
    schema = quietly.Schema(a=(0, 1), y=["n", "y"], rows=500)
    with pytest.raises(quietly.ParameterError) as refused:
        KIND(schema=schema, target="y", **wishes).plan()
    assert said in str(refused.value)


def test_old_expansions_are_refused_with_the_new_ones():
    schema = quietly.Schema(a=(0, 1), y=(0, 1), rows=500)
    with pytest.raises(quietly.ParameterError, match="fourier"):
        quietly.LinearRegression(schema=schema, target="y", expand="waves=20").plan()


def test_the_label_was_called_report():
    with pytest.raises(AttributeError) as refused:
        quietly.LinearRegression().report("label.html")
    assert str(refused.value) == "LinearRegression has no method 'report': it is called 'label'"
    assert not hasattr(quietly.LinearRegression(), "report")


@pytest.mark.parametrize("old, new", errors.RENAMED.items())
def test_old_exceptions_name_the_new_ones(old, new):
    assert issubclass(getattr(quietly, new), quietly.QuietlyError) and new in quietly.__all__
    for module in (quietly, errors):
        with pytest.raises(AttributeError) as refused:
            getattr(module, old)
        assert str(refused.value) == f"{module.__name__} has no {old}: it is called {new}"


@pytest.mark.parametrize("old, new", accounting._RENAMED.items())
def test_old_parameters_of_schemes_name_the_new_ones(old, new):
    for work in (accounting.epsilon, accounting.curve):
        with pytest.raises(TypeError) as refused:
            work("poisson", **{old: 1.0}, **({"delta": 1e-5} if work is accounting.epsilon else {}))
        assert str(refused.value) == f"a scheme has no parameter '{old}': it is called '{new}'"


@pytest.mark.parametrize("old, new", accounting._RENAMED_SCHEMES.items())
def test_old_schemes_name_the_new_ones(old, new):
    for run in (old, [{"scheme": old}]):
        with pytest.raises(quietly.ParameterError) as refused:
            accounting.epsilon(run, delta=1e-5)
        assert str(refused.value) == f"there is no scheme '{old}': it is called '{new}'"
