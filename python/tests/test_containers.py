"""Whatever holds the numbers, the model is the same, and nothing is copied that need not be."""

import subprocess
import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

import quietly

ROWS, WIDTH = 3000, 12
# The most memory so far, in MB. (Not ru_maxrss: a child starts with its parent's.)
PEAK = """
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1024
"""


def numbers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = np.where(rng.random((ROWS, WIDTH)) < 0.2, rng.uniform(-1, 1, (ROWS, WIDTH)), 0.0)
    y = X @ rng.uniform(-0.5, 0.5, WIDTH)
    return X, y, (y > 0).astype(np.int64)


X, Y, LABELS = numbers()
SPARSE = [
    quietly.LinearRegression(),
    quietly.LinearRegression(method="one-pass", epsilon=8.0),
    quietly.LinearRegression(constraint="l2", radius=2.0),
    quietly.QuantileRegressor(quantile=0.7),
    quietly.LogisticRegression(),
    quietly.LinearSVC(),
    quietly.ReLURegression(),
    quietly.KANRegressor(sampler="full-batch", noise_correlation="independent", epochs=10, hidden_layer_sizes=(8,)),
]


def formats(matrix):
    """Every format, with 32 and 64 bit indices, and one that says things twice and out of order."""
    csr = sp.csr_matrix(matrix)
    wide = csr.copy()
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    coo = sp.coo_array(matrix)
    # Halves are exact, and so are their sums.
    rows = [csr.indices[a:b] for a, b in zip(csr.indptr, csr.indptr[1:])]
    data = [csr.data[a:b] / 2 for a, b in zip(csr.indptr, csr.indptr[1:])]
    there_and_back = lambda parts: np.concatenate([part for each in parts for part in (each[::-1], each)])
    twice = sp.csr_matrix((there_and_back(data), there_and_back(rows), 2 * csr.indptr), csr.shape)
    assert not twice.has_canonical_format
    return {"csr": csr, "wide": wide, "csr array": sp.csr_array(matrix), "csc": sp.csc_matrix(matrix), "coo": coo,
            "twice": twice, "lil": sp.lil_matrix(matrix), "dok": sp.dok_array(matrix), "bsr": sp.bsr_matrix(matrix)}


def bits(model) -> tuple:
    return np.asarray(model.predict(X)).tobytes(), model.certificate_.to_json()


@pytest.mark.parametrize("kind", SPARSE, ids=lambda kind: str(kind)[:40])
def test_sparse_matrices_of_every_format(kind):
    target = LABELS if hasattr(kind, "decision_function") else Y
    kind.set_params(random_state=5, rows=ROWS)
    models = {name: kind.__class__(**kind.get_params()).fit(matrix, target) for name, matrix in formats(X).items()}
    assert len({bits(model) for model in models.values()}) == 1
    dense = kind.__class__(**kind.get_params()).fit(X, target)
    assert dense.certificate_.epsilon == models["csr"].certificate_.epsilon
    # Convex models keep zeros out, so that they scale in another way: they are those of libsvm text, not of the dense table.
    if isinstance(kind, (quietly.QuantileRegressor, quietly.LogisticRegression, quietly.LinearSVC)):
        assert abs(dense.score(X, target) - models["csr"].score(X, target)) < 0.1
    elif "constraint" in str(kind):
        assert np.allclose(dense.coef_, models["csr"].coef_, rtol=1e-6, atol=1e-9)
    else:
        assert bits(dense)[0] == bits(models["csr"])[0]
    for matrix in formats(X).values():
        assert np.array_equal(models["csr"].predict(matrix), models["csr"].predict(X))


def test_sparse_is_what_the_command_line_makes_of_libsvm_text(tmp_path):
    lines = [f"{label} " + " ".join(f"{k + 1}:{float(x)!r}" for k, x in enumerate(row) if x) for row, label in zip(np.abs(X), LABELS)]
    (tmp_path / "table.libsvm").write_text("\n".join(lines) + "\n")
    rules = {str(k + 1): (0, 1) for k in range(WIDTH)} | {"label": [0, 1]}
    schema = quietly.Schema(rules, rows=ROWS, features=WIDTH)
    model = quietly.LogisticRegression(schema=schema, random_state=2, target="label")
    file = model.fit(tmp_path / "table.libsvm", "label").coef_
    assert (model.fit(sp.csr_matrix(np.abs(X)), LABELS).coef_ == file).all()
    # A dense table with ranges from 0 is centred instead: not the same model.
    assert not np.allclose(model.fit(np.abs(X), LABELS).coef_, file)


def test_sparse_32_bits_and_whole_numbers():
    fit = lambda matrix: quietly.LogisticRegression(random_state=5).fit(matrix, LABELS)
    small = X.astype(np.float32)
    assert (fit(sp.csr_matrix(small)).coef_ == fit(sp.csr_matrix(small.astype(np.float64))).coef_).all()
    signs = np.sign(X)
    assert (fit(sp.csr_matrix(signs.astype(np.int8))).coef_ == fit(sp.csr_matrix(signs)).coef_).all()
    assert (fit(sp.csr_matrix(signs > 0)).coef_ == fit(sp.csr_matrix((signs > 0).astype(float))).coef_).all()


def test_sparse_matrices_are_left_as_they_were():
    matrix = sp.csr_matrix((np.array([0.5, 0.25, 0.25]), np.array([1, 0, 0]), np.array([0, 2, 3, 3])), (3, 2))
    before = [part.copy() for part in (matrix.indptr, matrix.indices, matrix.data)]
    quietly.LinearRegression(random_state=0).fit(matrix, np.zeros(3))
    assert all((a == b).all() for a, b in zip(before, (matrix.indptr, matrix.indices, matrix.data)))


def test_broken_sparse_matrices_are_refused_or_null():
    good = sp.csr_matrix(X)
    for indptr in (good.indptr[::-1].copy(), good.indptr + 1, good.indptr - 1):
        broken = good.copy()
        broken.indptr, broken.has_canonical_format = indptr, True
        with pytest.raises(quietly.DataError, match="indptr"):
            quietly.LogisticRegression(random_state=0).fit(broken, LABELS)
    # An index decides nothing, as a cell would not.
    beyond = good.copy()
    beyond.indices[:5], beyond.has_canonical_format = 10**6, True
    for kind in (quietly.LogisticRegression(random_state=0), quietly.KANClassifier(random_state=0, sampler="full-batch", epochs=5, noise_correlation="independent")):
        model = kind.fit(beyond, LABELS)
        assert len(model.predict(beyond)) == ROWS
    with pytest.raises(quietly.DataError, match="as many rows"):
        quietly.LogisticRegression().fit(good, LABELS[:-1])
    with pytest.raises(quietly.DataError, match="features"):
        quietly.LogisticRegression(random_state=0).fit(good, LABELS).predict(good[:, :5])
    with pytest.raises(quietly.DataError, match="Complex"):
        quietly.LogisticRegression().fit(good * 1j, LABELS)


def test_a_wide_sparse_matrix_stays_sparse():
    """20 000 rows of 20 000 features, 3.2 GB if they were dense."""
    code = """
import numpy as np, scipy.sparse as sp, quietly
rng = np.random.default_rng(0)
n = 20_000
X = sp.csr_matrix((np.ones(10 * n), rng.integers(0, n, 10 * n), np.arange(0, 10 * n + 1, 10)), (n, n))
y = rng.integers(0, 2, n)
before = peak()
quietly.LogisticRegression(rows=n, classes=[0, 1]).fit(X, y)
print(peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", PEAK + code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 400


def test_frames_of_every_kind():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.uniform(0, 1, 500), "n": rng.integers(0, 9, 500), "t": rng.random(500) < 0.5,
                          "c": rng.choice(["x", "y", "z"], 500), "pay": rng.uniform(0, 1, 500)})
    schema = quietly.Schema(a=(0, 1), n=(0, 9), t=[False, True], c=["x", "y", "z"], pay=(0, 1), rows=500)
    nullable = frame.convert_dtypes()
    kinds = {
        "numpy": frame,
        "categorical": frame.assign(c=frame.c.astype("category")),
        "nullable": nullable,
        "arrow-backed": frame.convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.DataFrame(frame.to_dict("list")),
        "polars categorical": pl.DataFrame(frame.to_dict("list")).with_columns(pl.col("c").cast(pl.Categorical)),
        "arrow": pa.table(frame.to_dict("list")),
        "arrow dictionary": pa.table(frame.to_dict("list")).set_column(3, "c", pa.array(frame.c).dictionary_encode()),
        "batch": pa.RecordBatch.from_pandas(frame),
        "reader": pa.table(frame.to_dict("list")).to_reader(64),
        "stream": Stream(pa.table(frame.to_dict("list"))),
    }
    fits = {name: quietly.LinearRegression(epsilon=5, schema=schema, random_state=3).fit(table, "pay") for name, table in kinds.items()}
    assert {name for name, fit in fits.items() if (fit.coef_ != fits["numpy"].coef_).any()} == set()


class Stream:
    """An object that speaks the Arrow stream protocol, and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_missing_cells_are_missing_in_every_kind():
    plain = pd.DataFrame({"a": [0.5, np.nan, 0.25] * 100, "pay": [0.1, 0.2, np.nan] * 100})
    schema = quietly.Schema(a=(0, 1), pay=(0, 1), rows=300)
    kinds = [plain, plain.convert_dtypes(), plain.convert_dtypes(dtype_backend="pyarrow"), plain.astype("float32").astype("float64"),
             pl.DataFrame({"a": [0.5, None, 0.25] * 100, "pay": [0.1, 0.2, None] * 100}),
             pa.table({"a": [0.5, None, 0.25] * 100, "pay": [0.1, 0.2, None] * 100})]
    fits = [quietly.LinearRegression(epsilon=5, schema=schema, random_state=3).fit(table, "pay") for table in kinds]
    assert len({fit.coef_.tobytes() for i, fit in enumerate(fits) if i != 3}) == 1


def test_truths_are_labels_and_numbers():
    """A label that is not found makes a null record, so that a model of nothing but those predicts one class."""
    truths = LABELS.astype(bool)
    fits = {
        "numpy": quietly.LogisticRegression(epsilon=50, random_state=1).fit(X, truths),
        "pandas": quietly.LogisticRegression(epsilon=50, random_state=1).fit(X, pd.Series(truths)),
        "nullable": quietly.LogisticRegression(epsilon=50, random_state=1).fit(X, pd.Series(truths, dtype="boolean")),
        "polars": quietly.LogisticRegression(epsilon=50, random_state=1).fit(X, pl.Series(truths)),
    }
    for name, fit in fits.items():
        assert fit.score(X, truths) > 0.9, name
        assert (fit.coef_ == fits["numpy"].coef_).all(), name
    signs = X > 0
    fit = lambda table: quietly.LinearRegression(random_state=1).fit(table, Y).coef_
    assert (fit(signs) == fit(signs.astype(float))).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_in_one_piece_are_not_copied(order, dtype):
    code = f"""
import numpy as np, quietly
X = np.ones((1_000_000, 24), dtype={dtype!r}, order={order!r})
y = np.ones(1_000_000, dtype={dtype!r})
quietly.LinearRegression(method="one-pass").fit(X[:1000].copy({order!r}), y[:1000])
before = peak()
quietly.LinearRegression(method="one-pass").fit(X, y)
print(peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", PEAK + code], capture_output=True, text=True, check=True)
    # The table has 92 or 183 MB.
    assert int(run.stdout) < 70


@pytest.mark.parametrize("way", [lambda y: y.array, lambda y: pd.Index(y), lambda y: y.to_frame(), lambda y: pd.Series(y.to_numpy(dtype=object))])
@pytest.mark.parametrize("target, kind", [("pay", quietly.LinearRegression), ("income", quietly.LogisticRegression)])
def test_targets_of_pandas_in_any_dress(target, kind, way, people, schema):
    X, y = people[["age", "hours", "sex"]], people[target]
    fit = lambda y: kind(schema=schema(target), random_state=3, target=target).fit(X, y).coef_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        assert (fit(way(y)) == fit(y)).all()


def test_decimals_are_numbers_and_dates_that_nobody_asked_for_do_no_harm(people, schema):
    X, y = people[["age", "hours", "sex"]], people["pay"]
    fit = lambda X, y: quietly.LinearRegression(schema=schema("pay"), random_state=3).fit(X, y).coef_
    decimals = X.assign(hours=[Decimal(repr(hours)) for hours in X.hours])
    dated = X.assign(day=pd.Timestamp("2020-02-02"))
    assert (fit(decimals, y) == fit(X, y)).all() and (fit(dated, y) == fit(X, y)).all()
    quietly.LinearRegression(schema=schema("pay"), random_state=3).fit(X, y).predict(dated)
