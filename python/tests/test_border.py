"""What one cell, one thread or one warning must not decide, and files that are not replaced unasked."""

import decimal
import warnings

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn import preprocessing
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline

import quietly

N = 400
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 3))
Y = np.where(X[:, 0] > 0, "a", "b")
SCHEMA = quietly.Schema(u=(-1, 1), v=(-1, 1), y=(-1, 1), rows=N)

pytestmark = pytest.mark.filterwarnings("ignore")


def model(**more):
    return quietly.LogisticRegression(**{"epsilon": 0.5, "delta": 1e-6, "classes": ["a", "b"], "rows": N} | more)


def linear(**more):
    return quietly.LinearRegression(**{"epsilon": 0.5, "delta": 1e-6, "schema": SCHEMA, "target": "y"} | more)


@pytest.mark.parametrize("cell", ["n/a", None, b"\xff", [1, 2], True, 10**5000, decimal.Decimal("sNaN"), 1j, float("nan")], ids=lambda cell: type(cell).__name__)
def test_a_cell_of_a_list_decides_nothing(cell):
    y = X[:, 0].tolist()
    rows = X[:, :2].tolist()
    linear().fit(rows, [*y[:-1], cell])
    rows[7] = [0.5, cell]
    linear().fit(rows, y)
    linear().fit(pd.DataFrame({"u": y, "v": [*y[:-1], cell]}, dtype=object), y)


def test_an_imputer_that_drops_columns_is_refused():
    empty = X.copy()
    empty[:, 2] = np.nan
    from sklearn.impute import SimpleImputer

    with pytest.raises(quietly.UncoveredStepError, match="keep_empty_features"):
        make_pipeline(SimpleImputer(strategy="constant", fill_value=0), model()).fit(empty, Y)
    kept = make_pipeline(SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True), model()).fit(empty, Y)
    assert kept[-1].n_features_in_ == 3


def test_threads_of_joblib_hide_no_step():
    def scaler():
        return quietly.StandardScaler(epsilon=0.5, delta=1e-6, rows=N)

    pipe = make_pipeline(preprocessing.StandardScaler(), FeatureUnion([("a", scaler()), ("b", scaler())], n_jobs=2))
    with joblib.parallel_backend("threading"), pytest.raises(quietly.UncoveredStepError):
        pipe.fit(X)
    # The control: without the step before, threads fit.
    with joblib.parallel_backend("threading"):
        FeatureUnion([("a", scaler()), ("b", scaler())], n_jobs=2).fit(X)


def test_functions_that_see_all_rows_are_listed():
    centred = TransformedTargetRegressor(linear(), func=lambda y: y - y.mean(), inverse_func=lambda y: y)
    said = centred.fit(X[:, :2], X[:, 0]).regressor_.certificate_.not_covered
    assert any("function of a TransformedTargetRegressor" in line for line in said)
    chosen = ColumnTransformer([("p", "passthrough", lambda Z: [k for k in range(3) if Z[:, k].max() > 0])])
    said = make_pipeline(chosen, model()).fit(X, Y)[-1].certificate_.not_covered
    assert any("chooses columns" in line for line in said)


def test_validation_is_of_other_people(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    schema = quietly.Schema(a=(-1, 1), b=(-1, 1), c=(-1, 1), y=["a", "b"], rows=N)
    grid = {"ridge": [0.01, 0.1]}
    for rows, candidate in [(X, model()), (frame, model(classes=None, schema=schema)), (str(path), model(classes=None, schema=schema))]:
        y = Y if rows is X else "y"
        with pytest.raises(quietly.ParameterError, match="other people"):
            quietly.tune(candidate, grid, rows, y, validation=(rows, y))
    with pytest.raises(quietly.ParameterError, match="other people"):
        quietly.tune(model(), grid, X, Y, validation=(X[100:200], Y[100:200]))
    found = quietly.tune(model(rows=300), grid, X[:300], Y[:300], validation=(X[300:], Y[300:]), trials=2)
    assert any("rows for validation" in line for line in found.certificate_.public)


def test_the_innermost_of_two_equal_blocks_ends(tmp_path):
    limit = quietly.Budget(20, 1e-3)
    with quietly.Ledger(tmp_path / "a", limit) as outer, quietly.Ledger(tmp_path / "c", limit) as inner:
        with inner:
            pass
        model().fit(X, Y)
        assert (len(outer.entries), len(inner.entries)) == (0, 1)


def made_there(path):
    fitted = quietly.LogisticRegression(epsilon=0.5, delta=1e-6, classes=["a", "b"], rows=N).fit(X, Y)
    return fitted.certificate_.epsilon


def test_a_worker_that_outlives_its_block_charges_no_other_ledger(tmp_path):
    limit = quietly.Budget(20, 1e-3)
    with quietly.Ledger(tmp_path / "1", limit) as first:
        joblib.Parallel(n_jobs=2)(joblib.delayed(made_there)(k) for k in range(2))
        # What workers spent is seen here.
        assert len(first.entries) == 2 and first.spent[0] == 1.0
    with quietly.Ledger(tmp_path / "2", limit) as second:
        with pytest.raises(quietly.ParameterError, match="block .* that has ended"):
            joblib.Parallel(n_jobs=2)(joblib.delayed(made_there)(k) for k in range(2))
        assert (len(first.entries), second.entries) == (2, [])


def test_a_text_that_names_a_ledger_is_charged_to_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quietly.Ledger("L", quietly.Budget(20, 1e-3))
    text = 'rows = 400\nledger = "L"\n[columns]\nu = { range = [-1, 1] }\nv = { range = [-1, 1] }\ny = { range = [-1, 1] }\n'
    linear(schema=quietly.Schema.parse(text)).fit(X[:, :2], X[:, 0])
    assert len(quietly.Ledger("L").entries) == 1


def test_a_scaler_whose_ledger_got_lost_is_noticed(tmp_path):
    ledger = quietly.Ledger(tmp_path / "L", quietly.Budget(20, 1e-3))
    rules = "".join(f"x{k} = {{ range = [-1, 1] }}\n" for k in range(3))
    (tmp_path / "s.toml").write_text(f'rows = 400\nledger = "L"\n[columns]\n{rules}')
    scaler = quietly.StandardScaler(epsilon=0.5, delta=1e-6, schema=quietly.Schema.read(tmp_path / "s.toml"))
    with pytest.raises(quietly.ParameterError, match="got lost on the way"):
        make_pipeline(scaler, preprocessing.FunctionTransformer(lambda Z: Z * 1.0), model()).fit(X, Y)
    assert len(ledger.entries) == 1
    make_pipeline(scaler, model()).fit(X, Y)
    assert len(ledger.entries) == 3


def test_a_warning_that_is_an_error_costs_no_model(tmp_path):
    declared = quietly.Schema(u=(-1, 1), v=(-1, 1), y=(-1, 1), rows=100_000)
    fitted = linear(schema=declared, epsilon=5.0)
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="rows were used"):
        warnings.simplefilter("error")
        fitted.fit(X[:, :2], X[:, 0])
    assert fitted.certificate_.epsilon > 0


def test_types_of_arrow_are_refused_before_the_charge(tmp_path):
    y = pa.array(X[:, 0])
    texts, lists = pa.array(["x"] * N), pa.array([[1.0]] * N)
    with quietly.Ledger(tmp_path / "L", quietly.Budget(20, 1e-3)) as ledger:
        for column in (texts, lists):
            table = pa.table({"u": column, "v": y, "y": y})
            for rows in (table, pa.RecordBatchReader.from_batches(table.schema, table.to_batches())):
                with pytest.raises(quietly.ColumnTypesError):
                    linear().fit(rows, "y")
        table = pa.table({"u": y, "v": y, "y": texts})
        with pytest.raises(quietly.ColumnTypesError):
            linear().fit(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), "y")
        assert ledger.entries == []


def test_names_are_texts_or_none_of_them():
    frame = pd.DataFrame(X, columns=["b", "a", 0])
    with pytest.raises(quietly.DataError, match="all be texts"):
        model().fit(frame, Y)


def test_nothing_is_replaced_unasked(tmp_path):
    first, second = model().fit(X, Y), model().fit(X, Y)
    first.save(tmp_path / "m")
    first.save(tmp_path / "m")
    with pytest.raises(quietly.FileError, match="overwrite=True"):
        second.save(tmp_path / "m")
    second.save(tmp_path / "m", overwrite=True)


def test_a_ledger_leaves_room_by_default(tmp_path):
    with quietly.Ledger(tmp_path / "L", quietly.Budget(20, 1e-5)) as ledger:
        model(delta=None).fit(X, Y)
        model(delta=None).fit(X, Y)
        assert [entry[3] for entry in ledger.entries] == [1e-6, 1e-7]


def test_a_forged_certificate_is_no_certificate():
    good = model().fit(X, Y).certificate_.to_json()
    assert quietly.Certificate.of_json(good).epsilon < 0.5
    for old, new in [('"unit": "row"', '"unit": "row\\u001b[2J"'), ('"test_only": false', '"test_only": true')]:
        assert old in good
        with pytest.raises(quietly.ModelError):
            quietly.Certificate.of_json(good.replace(old, new))


@pytest.mark.parametrize("radius", [float("nan"), float("inf"), -1, 0])
def test_a_radius_is_above_zero(radius):
    with pytest.raises(quietly.ParameterError, match="radius"):
        model(radius=radius).fit(X, Y)
