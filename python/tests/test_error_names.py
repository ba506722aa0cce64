"""Every variant of every Rust error has an exception of its own name; a fault of ours is one, too."""

import inspect
import pathlib
import re

import numpy as np
import pytest

import quietly
from quietly import _quietly, accounting, errors, noise

CRATES = pathlib.Path(__file__).parents[2] / "crates"
PARENTS = (ValueError, OSError, RuntimeError)


def variants(crate: str) -> set[str]:
    text = (CRATES / crate / "src" / "error.rs").read_text()
    body = re.search(r"pub enum Error \{\n(.*?)\n\}\n", text, flags=re.DOTALL)
    assert body is not None
    return set(re.findall(r"^    ([A-Z]\w+)", body[1], flags=re.MULTILINE))


def named(crate: str) -> dict[str, str]:
    text = (CRATES / crate / "src" / "error.rs").read_text()
    body = text[text.index("fn name(&self)") :]
    arms = re.findall(r'((?:Error::\w+(?: \{ \.\. \}|\(_\))?(?: \| )?)+) => "(\w+)"', body)
    return {variant: name for arm, name in arms for variant in re.findall(r"Error::(\w+)", arm)}


@pytest.mark.parametrize("crate", ["quietly-engine", "quietly-data", "quietly-accounting", "quietly-noise"])
def test_every_variant_has_an_exception(crate):
    names = named(crate)
    inner = {"Accounting", "Data", "Noise"} if crate == "quietly-engine" else set()
    assert len(names) >= 3 and set(names) == variants(crate) - inner
    for name in names.values():
        kind = getattr(errors, f"{name}Error")
        assert issubclass(kind, errors.QuietlyError) and issubclass(kind, PARENTS) and kind.__doc__


def test_every_exception_is_in_the_table_of_the_module():
    said = set(re.findall(r"\w+Error", errors.__doc__))
    kinds = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.QuietlyError) and kind is not errors.QuietlyError}
    assert kinds <= said and all(hasattr(quietly, name) for name in kinds)


def refused(question) -> errors.QuietlyError:
    with pytest.raises(errors.QuietlyError) as caught:
        question()
    return caught.value


def test_names_and_codes(tmp_path):
    X = np.zeros((5, 2))
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    (tmp_path / "one.libsvm").write_text("1 1:0.5\n")
    schema = quietly.Schema(a=(0, 1), y=(0, 1), rows=5)
    fit = lambda where: lambda: quietly.LinearRegression(schema=schema).fit(where, "y")
    cases = [
        (errors.ParameterError, "A01", lambda: accounting.epsilon("gaussian", noise_multiplier=-1.0, delta=1e-5)),
        (errors.TooManyError, "A03", lambda: accounting.epsilon("gaussian", noise_multiplier=1.0, steps=10**15, delta=1e-5)),
        (errors.UnreachableError, "A04", lambda: accounting.calibrate("gaussian", steps=10**7, epsilon=0.001, delta=1e-12)),
        (errors.UnreadableError, "D01", fit(tmp_path / "nothing.csv")),
        (errors.NoFilesError, "D02", fit(tmp_path / "*.parquet")),
        (errors.DuplicateColumnsError, "D05", fit(tmp_path / "twice.csv")),
        (errors.SchemaSyntaxError, "D07", lambda: quietly.Schema.parse("rows = ")),
        (errors.UnfinishedSchemaError, "D08", lambda: quietly.Schema.parse('rows = "?"\n[columns]\na = { range = "?" }')),
        (errors.ImpossibleSchemaError, "D09", lambda: quietly.Schema(a=(1, 0))),
        (errors.FeatureCountError, "D14", fit(tmp_path / "one.libsvm")),
        (errors.NoiseParameterError, "Q01", lambda: noise.rounded_gaussian(-1.0, 3)),
        (errors.ParameterError, "Q02", lambda: quietly.LinearRegression(method="magic").fit(X, X[:, 0])),
        (errors.ModelError, "Q04", lambda: quietly.load(tmp_path / "one.libsvm")),
    ]
    for kind, code, question in cases:
        error = refused(question)
        assert type(error) is kind and error.code == code, (kind, error)
    assert issubclass(errors.NoiseParameterError, ValueError)


def test_a_fault_of_ours_says_where_and_nothing_else(capfd):
    error = refused(lambda: _quietly._panic("secret 4711"))
    assert type(error) is errors.InternalError and isinstance(error, RuntimeError)
    assert re.search(r"errors\.rs:\d+", str(error)) and "report" in str(error)
    assert "4711" not in str(error) and "4711" not in "".join(capfd.readouterr())
    # The interpreter goes on.
    assert accounting.epsilon("gaussian", noise_multiplier=1.0, delta=1e-5)[1] > 0


def test_an_unfitted_model_is_refused_as_scikit_learn_does():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError) as caught:
        quietly.LinearRegression().predict(np.zeros((1, 1)))
    assert isinstance(caught.value, errors.QuietlyError)
