"""Refusals have names, and say nothing about anybody."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import quietly

SECRET = 4711.25
X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
Y = X[:, 0] / 2
LABELS = (Y > 0).astype(int)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
BOTH = quietly.Schema(a=(-1, 1), b=(-1, 1), pay=(0, 100), wage=(0, 100), rows=200)


def linear(**wishes):
    return quietly.LinearRegression(**{"random_state": 0, **wishes})


@pytest.mark.parametrize(
    "wishes",
    [
        {"epsilon": 0},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"epsilon": "1"},
        {"epsilon": None},
        {"delta": 1.0},
        {"delta": -1e-5},
        {"delta": "small"},
        {"neighbours": "swap"},
        {"method": "magic"},
        {"constraint": "l7"},
        {"expand": "spline"},
        {"random_state": -1},
        {"random_state": 0.5},
        {"rows": 0},
        {"rows": -5},
        {"n_jobs": "all"},
        {"target_range": 5},
        {"schema": "people.schema.toml"},
        {"steps": -1},
    ],
    ids=str,
)
def test_parameters_are_refused_by_name(wishes):
    with pytest.raises(quietly.ParameterError) as refused:
        linear(**wishes).fit(X, Y)
    assert isinstance(refused.value, (quietly.QuietlyError, ValueError))


@pytest.mark.parametrize(
    "work, kind, said",
    [
        (lambda: quietly.Schema(a=(0, 1), rows=-1), quietly.SchemaError, "rows must be a whole number, at least 1, but is -1"),
        (lambda: quietly.Schema(a=(0, 1), rows="many"), quietly.SchemaError, "rows must be a whole number, at least 1, but is 'many'"),
        (lambda: quietly.Schema(a=(0, 1), features=0), quietly.SchemaError, "features must be a whole number, at least 1, but is 0"),
        (lambda: quietly.Schema({0: (0, 1)}, rows=5), quietly.SchemaError, "the name of a column must be a text"),
        (lambda: quietly.Schema([("a", (0, 1))], rows=5), quietly.SchemaError, "columns must be a dict"),
        (lambda: quietly.Schema(a=(0, 1), rows=5, unit=3), quietly.SchemaError, "unit must be a word for what one row is, but is 3"),
        (lambda: quietly.Schema(a=(0, 1), rows=5, missing=0), quietly.SchemaError, 'missing must be "middle" or "drop", but is 0'),
        (lambda: quietly.Schema(a={"range": (0, 1), "other": True}), quietly.SchemaError, "beside which there may be missing"),
        (lambda: quietly.Schema(a={"values": ["x"], "mising": 1}), quietly.SchemaError, "but not \"mising\""),
        (lambda: quietly.Schema(a=(0, float("nan"))), quietly.SchemaError, "must be two finite numbers"),
        (lambda: quietly.Schema({"a": (0, 1)}, a=(0, 2)), quietly.SchemaError, "is there twice"),
        (lambda: quietly.Schema(a={1, 2}), quietly.SchemaError, "but is of type set"),
        (lambda: quietly.Schema(a=(0, 1)).to_toml(), quietly.SchemaError, "no number of rows"),
        (lambda: quietly.noise.rounded_gaussian(1.0, 10**15), quietly.ParameterError, "as fit into memory"),
        (lambda: quietly.noise.rounded_gaussian(1.0, -3), quietly.ParameterError, "size must be a whole number from 0"),
        (lambda: quietly.noise.discrete_laplace(10**30, 1, 3), quietly.ParameterError, "numerator must be"),
        (lambda: quietly.noise.rounded_gaussian(1.0, 3, random_state=-1), quietly.ParameterError, "random_state must be"),
        (lambda: quietly.accounting.epsilon(["gaussian"], delta=1e-5), quietly.ParameterError, "a list of runs"),
        (lambda: quietly.compare(linear(), X, Y, epsilons=1), quietly.ParameterError, "epsilons must be a list"),
        (lambda: quietly.compare(linear(), FRAME, "spnd"), quietly.DataError, "X has no column 'spnd'"),
        (lambda: quietly.tune(linear(), {"steps": [1]}, X, Y, public=X), quietly.ParameterError, "public=(X, y)"),
        (lambda: linear(rows=200).fit(X, Y).plot(public=X), quietly.ParameterError, "public=(X, y)"),
        (lambda: linear(rows=200).fit(FRAME, Y).score(FRAME, "spend"), quietly.DataError, "X has no column 'spend'"),
        (lambda: linear(target=5).fit(X, Y), quietly.ParameterError, "target must be the name of a column"),
        (lambda: linear().fit(b"table.csv", "y"), quietly.DataError, "give the path of the file"),
        (lambda: quietly.LogisticRegression().fit(np.zeros((2000, 1)), np.arange(2000)), quietly.DataError, "more than 1000 different labels"),
        (lambda: linear(schema=BOTH).fit(FRAME, Y), quietly.ParameterError, "say which of them is y, as in target='pay'"),
        (lambda: linear(schema=BOTH, target="payy").fit(FRAME, Y), quietly.ParameterError, "the schema has no column 'payy', the target"),
        (lambda: linear(schema=BOTH).fit(FRAME, pd.Series(Y, name="Pay")), quietly.ParameterError, "no column of the name of y, the target, but has others that X lacks, 'pay', 'wage'"),
        (lambda: linear(schema=BOTH.for_columns(["a", "b", "pay"]), target_range=(0, 1)).fit(FRAME, pd.Series(Y, name="pay")), quietly.ParameterError, "leave one of them out"),
        (lambda: linear(schema=BOTH, target="pay").fit(X[:, :1], Y), quietly.DataError, "X has 1 columns without names, but the schema has 3"),
        (lambda: linear(schema=quietly.Schema(a=[False, True], b=(0, 1), pay=(0, 1), rows=9)).fit(FRAME, pd.Series(Y, name="pay")),
         quietly.DataError, "the schema lists truths for column 'a', but it is a column of numbers"),
        (lambda: quietly.StandardScaler(schema=quietly.Schema(a=(0, 1), rows=200)).fit(FRAME), quietly.ParameterError, "1 column of X is not in the schema"),
        (lambda: quietly.StandardScaler().fit("table.csv"), quietly.DataError, "a table in memory"),
        (lambda: linear().fit(pl.LazyFrame({"a": [1.0]}), Y), quietly.DataError, "give X.collect()"),
        (lambda: linear().fit(X, pl.LazyFrame({"a": [1.0]})), quietly.DataError, "one column"),
        (lambda: linear().fit(pd.Series(Y), Y), quietly.DataError, "give X.to_frame()"),
        (lambda: linear().fit(pl.Series(Y), Y), quietly.DataError, "give X.to_frame()"),
        (lambda: linear().fit(pa.array(Y), Y), quietly.DataError, "give pyarrow.table("),
        (lambda: linear().fit(None, Y), quietly.DataError, "X must have two dimensions, but is of type NoneType"),
        (lambda: linear().fit({"a": Y}, Y), quietly.DataError, "X must have two dimensions, but is of type dict"),
        (lambda: linear(epsilon=None).fit(X, Y), quietly.ParameterError, "but is None"),
        (lambda: linear(epsilon="1").fit(X, Y), quietly.ParameterError, "epsilon must be a number, but is '1'"),
        (lambda: linear(steps=-1).fit(X, Y), quietly.ParameterError, "steps must be a whole number, at least 1, but is -1"),
        (lambda: quietly.Budget(None, 1e-5), quietly.ParameterError, "epsilon must be a number, but is None"),
        (lambda: quietly.LogisticRegression(classes=2).fit(X, LABELS), quietly.ParameterError, "classes must be a list of all labels"),
    ],
)
def test_refusals_say_what_was_wanted_and_what_was_got(work, kind, said):
    with pytest.raises(kind) as refused:
        work()
    assert said in str(refused.value)


def test_ranges_may_be_lists_where_they_are_called_so():
    schema = quietly.Schema(a={"range": [0, 1]}, rows=9)
    assert schema.holds("a") == "range" and quietly.Schema.parse(schema.to_toml()) == schema
    assert eval(repr(quietly.Schema(a=(0, 1))), {"Schema": quietly.Schema}).rows is None


def test_what_is_almost_certainly_a_mistake_is_warned_of():
    with pytest.warns(UserWarning, match="no schema was given"):
        linear().fit(X, Y)
    with pytest.warns(UserWarning, match="delta 1e-2 is more than one over 200 rows"):
        linear(delta=0.01).fit(X, Y)


TEXTS = pd.Series(["0.5"] * 200, name="pay", dtype="str")
DAYS = pd.Series(pd.date_range("2020-01-01", periods=200), name="pay")
PAY = BOTH.for_columns(["a", "b", "pay"])
NAMED = pd.Series(Y, name="pay")


@pytest.mark.parametrize(
    "schema, X, y, code, said",
    [
        # A column that the schema describes and the table lacks, as in the command line.
        (PAY, FRAME.rename(columns={"b": "bb"}), NAMED, "D10", "X has no column 'b', which the schema describes. 1 column of X is not in the schema."),
        (PAY, FRAME.rename(columns={"b": "bb"}).assign(pay=Y), "pay", "D10", "no column 'b', which"),
        (PAY, pl.DataFrame({"a": Y, "bb": Y, "pay": Y}), "pay", "D10", "no column 'b', which"),
        (PAY, pa.table({"a": Y, "pay": Y}), "pay", "D10", "no column 'b', which the schema describes. Rename"),
        (PAY, FRAME, "pay", "D10", "X has no column 'pay'"),
        (BOTH, FRAME, NAMED, "D10", "no column 'wage', which"),
        # A range for a column of texts, or of dates.
        (PAY, FRAME.assign(b=TEXTS), NAMED, "D13", "column 'b' is a column of texts where numbers are wanted"),
        (PAY, FRAME.assign(b=TEXTS.astype("string")), NAMED, "D13", "column 'b' is a column of texts"),
        (PAY, pl.DataFrame({"a": Y, "b": list(TEXTS), "pay": Y}), "pay", "D13", "column 'b' is a column of texts"),
        (PAY, pa.table({"a": Y, "b": list(TEXTS), "pay": Y}), "pay", "D13", "column 'b' is a column of texts"),
        (PAY, pa.table({"a": Y, "b": DAYS, "pay": Y}), "pay", "D13", "column 'b' holds dates"),
        (PAY, pl.DataFrame({"a": Y, "b": DAYS, "pay": Y}), "pay", "D13", "column 'b' holds dates"),
        (PAY, FRAME.assign(b=DAYS), NAMED, "D13", "column 'b' holds dates"),
        (None, FRAME.assign(secret=TEXTS), NAMED, "D13", "column 3 of X is a column of texts"),
        (None, FRAME.assign(secret=DAYS), NAMED, "D13", "column 3 of X holds dates"),
        (None, np.array([["0.5", "1"]] * 200), NAMED, "D13", "column 1 of X is a column of texts"),
        # Texts or dates as the target of a regression.
        (PAY, FRAME, TEXTS, "D13", "the target is a column of texts"),
        (PAY, FRAME, np.array(["x"] * 200), "D13", "the target is a column of texts"),
        (PAY, pa.table({"a": Y, "b": Y, "pay": list(TEXTS)}), "pay", "D13", "the target is a column of texts"),
        (PAY, FRAME, pl.Series("pay", list(TEXTS)), "D13", "the target is a column of texts"),
        (None, X, np.array(["x"] * 200), "D13", "the target is a column of texts"),
        (PAY, FRAME, DAYS, "D13", "the target holds dates"),
        # Texts as values of a column of numbers.
        (quietly.Schema(a=["x", "y"], b=(0, 1), pay=(0, 1), rows=200), FRAME, NAMED, "D13", "lists texts for column 'a'"),
        (quietly.Schema(a=["x", "y"], b=(0, 1), pay=(0, 1), rows=200), pa.table({"a": Y, "b": Y, "pay": Y}), "pay", "D13", "lists texts for column 'a'"),
    ],
)
def test_names_and_types_are_refused_before_the_charge(schema, X, y, code, said, tmp_path):
    with quietly.Ledger(tmp_path / "l", quietly.Budget(9, 1e-3)) as ledger:
        with pytest.raises(quietly.DataError) as refused:
            quietly.LinearRegression(schema=schema, rows=200).fit(X, y)
        assert refused.value.code == code and said in str(refused.value) and "secret" not in str(refused.value)
        assert isinstance(refused.value, quietly.MissingColumnsError if code == "D10" else quietly.ColumnTypesError)
        assert ledger.entries == []


def test_a_table_may_have_more_columns_than_the_schema(recwarn):
    model = linear(schema=PAY).fit(FRAME.assign(secret=TEXTS), NAMED)
    assert list(model.feature_names_in_) == ["a", "b"] and not [w for w in recwarn if "secret" in str(w.message)]
    # Objects may hold numbers, which no type says.
    linear(schema=PAY).fit(FRAME.astype(object), NAMED.astype(object))
    # Names that are there twice have places.
    twice = FRAME.set_axis(["secret", "secret"], axis=1)
    with pytest.raises(quietly.DuplicateColumnsError, match="columns 1 and 2 of X have the same name") as refused:
        linear().fit(twice, Y)
    assert refused.value.code == "D05" and "secret" not in str(refused.value)


def test_texts_that_are_numbers_are_found_among_numbers():
    there = FRAME.assign(a=LABELS, pay=Y)
    fit = lambda values: linear(epsilon=50, schema=quietly.Schema(a=values, b=(-1, 1), pay=(-1, 1), rows=200)).fit(there, "pay").coef_
    assert (fit(["0", "1"]) == fit([0, 1])).all()


def test_files_that_are_none_are_refused_without_a_cell(tmp_path):
    row = "Mary Smith,41,4711.25,4711.25\n"
    (tmp_path / "people.csv").write_text(row * 3)
    (tmp_path / "brackets.csv").write_text("[a],[b],pay\n" + "1,2,3\n" * 3)
    brackets = quietly.Schema({"[a]": (0, 9), "[b]": (0, 9), "pay": (0, 9)}, rows=200)
    linear(schema=brackets).fit(tmp_path / "brackets.csv", "pay")
    (tmp_path / "people.json").write_text('{"age": 4711.25, "age": 4711.25}\n' * 3)
    for work in [
        lambda: linear(schema=BOTH).fit(tmp_path / "people.csv", "pay"),
        lambda: linear(schema=BOTH).fit(tmp_path / "people.json", "pay"),
        lambda: quietly.Schema.read(tmp_path / "people.csv"),
    ]:
        with pytest.raises(quietly.QuietlyError) as refused:
            work()
        assert "Mary" not in str(refused.value) and "4711" not in str(refused.value)


def test_ranges_must_make_sense():
    for wrong in [(1, 0), (0, float("inf")), (float("nan"), 1)]:
        with pytest.raises(quietly.SchemaError):
            linear(target_range=wrong).fit(X, Y)
        with pytest.raises(quietly.SchemaError):
            quietly.Schema(age=wrong, rows=5)
    for wrong in [{"age": 5}, {"age": "F"}, {"age": []}, {"age": {"range": (0, 1), "values": [1]}}, {}]:
        with pytest.raises(quietly.SchemaError):
            quietly.Schema(wrong, rows=5)
    with pytest.raises(quietly.SchemaError):
        quietly.Schema.parse("rows = ?")
    with pytest.raises(quietly.FileError):
        quietly.Schema.read("no-such.toml")


def test_shapes_are_public_and_may_be_refused():
    for bad_x, bad_y in [
        (X[:, 0], Y),
        (X, Y[:-1]),
        (X[:0], Y[:0]),
        (X[:, :0], Y),
        (X[None], Y),
        (X, np.stack([Y, Y], axis=1)),
        (X, None),
        (X + 1j, Y),
        ("no-such-file.csv", Y),
    ]:
        with pytest.raises(quietly.DataError):
            linear().fit(bad_x, bad_y)
    model = linear().fit(X, Y)
    with pytest.raises(quietly.DataError, match="3 features"):
        model.predict(np.zeros((5, 3)))
    with pytest.raises(quietly.DataError, match='"x1"'):
        model.predict(pd.DataFrame({"x0": [1.0], "other": [SECRET]}))
    with pytest.raises(quietly.FileError):
        linear(schema=quietly.Schema(a=(0, 1), y=(0, 1), rows=5)).fit("no-such-file.csv", "y")


def test_cells_decide_nothing():
    strange = X.astype(object)
    for row, cell in enumerate([None, "text", float("nan"), float("inf"), SECRET, {"a": 1}, [1], b"\xff", "\udcff", 10**400]):
        strange[row, 0] = cell
    model = linear().fit(strange, Y)
    assert np.isfinite(model.predict(strange)).all()
    floats = X.copy()
    floats[:3] = [[np.nan, np.inf], [-np.inf, 1e300], [SECRET, -SECRET]]
    target = Y.copy()
    target[5:8] = [np.nan, np.inf, SECRET]
    assert np.isfinite(linear().fit(floats, target).coef_).all()
    nothing = np.full_like(X, np.nan)
    assert np.isfinite(linear().fit(nothing, np.full_like(Y, np.nan)).coef_).all()
    frame = pd.DataFrame({"a": ["x", SECRET, None] * 66 + ["0.5", 1], "b": 1.0})
    message = str(linear().fit(frame, Y).certificate_)
    assert "4711" not in message


def test_labels():
    classifier = quietly.LogisticRegression(random_state=0)
    with pytest.raises(quietly.DataError, match="at least two classes"):
        classifier.fit(X, np.zeros(200))
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier.fit(X, Y)
    with pytest.raises(quietly.ParameterError, match="support vector machine"):
        quietly.LinearSVC(random_state=0).fit(X, np.arange(200) % 3)
    fitted = classifier.fit(X, LABELS)
    assert any("labels of this table was treated as public" in line for line in fitted.certificate_.public)
    declared = quietly.LogisticRegression(random_state=0, classes=[0, 1]).fit(X, LABELS)
    assert not any("labels of this table" in line for line in declared.certificate_.public)
    assert (declared.coef_ == fitted.coef_).all()
    # A label that nobody declared makes a null record, and no error.
    quietly.LogisticRegression(random_state=0, classes=[0, 1]).fit(X, np.where(X[:, 1] > 0.9, 7, LABELS))


def test_unfitted_and_unsaved(tmp_path):
    for kind in (quietly.LinearRegression, quietly.LogisticRegression, quietly.KANRegressor):
        with pytest.raises(NotFittedError):
            kind().predict(X)
        with pytest.raises(NotFittedError):
            kind().save(tmp_path / "model")
    with pytest.raises(quietly.FileError):
        linear().fit(X, Y).save(tmp_path / "no" / "folder")
    with pytest.raises(quietly.FileError):
        quietly.load(tmp_path / "nothing")
    (tmp_path / "wrong").write_text("{}")
    with pytest.raises(quietly.ModelError) as refused:
        quietly.load(tmp_path / "wrong")
    assert refused.value.code == "Q04"


def test_nothing_is_taken_from_the_table():
    """Ten times the target: without a declared range it is cut to [-1, 1], and the certificate says so."""
    model = linear(epsilon=50).fit(X, 100 * Y)
    assert np.abs(model.predict(X)).max() < 5
    assert any("within [-1, 1]" in line for line in model.certificate_.public)
    assert any("number of rows" in line for line in model.certificate_.public)
    assert not any("number of rows of this table" in line for line in linear(rows=200).fit(X, Y).certificate_.public)
    assert model.certificate_.test_only and not quietly.LinearRegression().fit(X, Y).certificate_.test_only
