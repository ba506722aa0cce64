"""No cell of a table leaves it, whatever goes wrong.

Every word of the tables here is marked: cells, names of columns that no schema declares, the name of y. Every function that takes a table is
called with every kind of table, also with tables that are refused. The mark must not be in anything that comes out.
"""

import contextlib
import io
import itertools
import logging
import pickle
import random
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import quietly

MARK = "☃"
# The mark in text, in JSON, TOML and repr; and the word beside it, in UTF-8 and UTF-16.
FORMS = [MARK.encode(), b"u2603", b"\\xe2\\x98\\x83", b"zq7", "zq7".encode("utf-16-le")]
ROWS = 30
RNG = random.Random(2603)
SCHEMA = quietly.Schema(a=(0, 1), c=["x", "y"], y=(0, 1), rows=ROWS)
LABELS = quietly.Schema(a=(0, 1), c=["x", "y"], y=["no", "yes"], rows=ROWS)


def word() -> str:
    return f"{MARK}zq7{RNG.randrange(10**6)}"


def frame(**columns) -> pd.DataFrame:
    """Declared columns whose cells are marked, beside one whose name is marked, too."""
    mixed = [word() if k % 3 else 0.5 for k in range(ROWS)]
    usual = {"a": mixed, "c": [word() if k % 4 else "x" for k in range(ROWS)], word(): [word() for _ in range(ROWS)], "y": list(mixed)}
    return pd.DataFrame(usual | columns, dtype=object)


def texts(table: pd.DataFrame) -> dict[str, list]:
    return {name: [str(cell) for cell in table[name]] for name in table}


# Every table, good or not, in every container: names of the columns and lists of cells.
TABLES = {
    "good": frame,
    "without names of the schema": lambda: frame().rename(columns=lambda name: word()),
    "without a column": lambda: frame().drop(columns="a"),
    "without the target": lambda: frame().drop(columns="y"),
    "more columns": lambda: frame(**{word(): [word()] * ROWS, word(): [word()] * ROWS}),
    "dates": lambda: frame(**{word(): pd.date_range("2020-01-01", periods=ROWS)}),
    "dates as a feature": lambda: frame(a=pd.date_range("2020-01-01", periods=ROWS)),
    "bytes, lists and dicts": lambda: frame(a=[[word()], {word(): word()}, word().encode()] * (ROWS // 3)),
}
CONTAINERS = {
    "pandas": lambda table: table,
    "pandas texts": lambda table: pd.DataFrame(texts(table), dtype="string"),
    "pandas categories": lambda table: pd.DataFrame(texts(table), dtype="category"),
    "pandas, names twice": lambda table: pd.concat([table, table], axis=1),
    "polars": lambda table: pl.DataFrame(texts(table)),
    "polars objects": lambda table: pl.DataFrame({name: pl.Series(list(table[name]), dtype=pl.Object) for name in table}),
    "pyarrow": lambda table: pa.table(texts(table)),
    "pyarrow, names twice": lambda table: pa.table([pa.array(cells) for cells in texts(table).values()], names=[word()] * table.shape[1]),
    "numpy objects": lambda table: table.to_numpy(dtype=object),
    "numpy texts": lambda table: np.array(list(texts(table).values())).T,
    "lists": lambda table: table.to_numpy(dtype=object).tolist(),
    "ragged lists": lambda table: [[word()] * (1 + k % 3) for k in range(ROWS)],
    "dict": lambda table: dict(table),
    "series": lambda table: table.iloc[:, 0],
}


def told(work) -> tuple[list[str], list[str]]:
    """All that somebody hears of a call: what it prints, logs, warns of and raises; and what is public of the result."""
    result, raised_, out = [], [], io.StringIO()
    handler = logging.StreamHandler(out)
    logging.getLogger().addHandler(handler)
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        warnings.simplefilter("always")
        try:
            result = shown(work())
        except Exception as error:
            raised_ = raised(error)
    logging.getLogger().removeHandler(handler)
    return [*raised_, out.getvalue(), *(f"{w.message} {w.message!r} {w.message.args}" for w in warned)], result


def raised(error: BaseException | None) -> list[str]:
    if error is None:
        return []
    own = [str(error), repr(error), repr(error.args), repr(getattr(error, "__notes__", ())), str(vars(error))]
    trace = ["".join(traceback.TracebackException.from_exception(error).format())]
    return [type(error).__name__, *own, *trace, *raised(error.__cause__), *raised(error.__context__)]


def shown(result) -> list[str]:
    """What is public of a result. Predictions are not, and no text either."""
    if isinstance(result, np.ndarray):
        return [] if result.dtype.kind == "f" else [str(result.tolist())]
    if not hasattr(result, "certificate_"):
        return [str(result), repr(result)]
    certificate = result.certificate_
    said = [repr(result), str(result), str(vars(result).get("feature_names_in_", "")), repr(certificate), certificate.to_json(), certificate.label()]
    said += [certificate._repr_html_(), pickle.dumps(result).decode("latin-1")]
    if hasattr(result, "plan_"):
        said += [str(result.plan_), repr(result.plan_), result.plan_.to_json(), result.plan_._repr_html_()]
    return said


def marked(heard: list[str]) -> list[str]:
    return [text for text in heard for form in FORMS if form in text.encode("utf-8", "surrogatepass") or form.decode("latin-1") in text]


def linear(**more):
    return quietly.LinearRegression(**{"schema": SCHEMA, "epsilon": 1.0, "n_jobs": 1} | more)


def logistic(**more):
    return quietly.LogisticRegression(**{"schema": LABELS, "epsilon": 1.0, "n_jobs": 1} | more)


NUMBERS = pd.DataFrame({"a": np.linspace(0, 1, ROWS), "c": ["x", "y"] * (ROWS // 2)})
FITTED = linear(random_state=1).fit(NUMBERS, NUMBERS.a.rename("y"))
CLASSIFIER = logistic(random_state=1).fit(NUMBERS, pd.Series(["no", "yes"] * (ROWS // 2), name="y"))
NETWORK = {"sampler": "full-batch", "noise_correlation": "independent", "epochs": 2, "hidden_layer_sizes": (2,), "random_state": 1}
PUBLIC = (NUMBERS, NUMBERS.a.rename("y"))


def column(X):
    """A marked column, with a marked name where it can have one."""
    return pd.Series([word()] * ROWS, name=word(), dtype=object) if hasattr(X, "columns") else np.array([word()] * ROWS)


# Every function that takes a table. All of them get a table that is marked.
FUNCTIONS = {
    "fit": lambda X: linear().fit(X, "y"),
    "fit of a column": lambda X: linear().fit(X, column(X)),
    "fit without a schema": lambda X: linear(schema=None).fit(X, column(X)),
    "fit with a target": lambda X: linear(target="y").fit(X, column(X)),
    "fit with another target": lambda X: linear(schema=SCHEMA.for_columns(["a", "c"]), target_range=(0, 1)).fit(X, column(X)),
    "classify": lambda X: logistic().fit(X, "y"),
    "classify a column": lambda X: logistic(schema=LABELS.for_columns(["a", "c"]), classes=["no", "yes"]).fit(X, column(X)),
    "auto": lambda X: quietly.AutoRegressor(schema=SCHEMA, epsilon=20.0).fit(X, "y"),
    "auto of classes": lambda X: quietly.AutoClassifier(schema=LABELS).fit(X, "y"),
    "svm": lambda X: quietly.LinearSVC(schema=LABELS).fit(X, "y"),
    "relu": lambda X: quietly.ReLURegression(schema=SCHEMA).fit(X, "y"),
    "quantile": lambda X: quietly.QuantileRegressor(schema=SCHEMA).fit(X, "y"),
    "huber": lambda X: quietly.HuberRegressor(schema=SCHEMA).fit(X, "y"),
    "network": lambda X: quietly.KANRegressor(schema=SCHEMA, **NETWORK).fit(X, "y"),
    "network of classes": lambda X: quietly.KANClassifier(schema=LABELS, **NETWORK).fit(X, "y"),
    "predict": lambda X: FITTED.predict(X),
    "predict classes": lambda X: CLASSIFIER.predict(X),
    "predict_proba": lambda X: CLASSIFIER.predict_proba(X),
    "predict_log_proba": lambda X: CLASSIFIER.predict_log_proba(X),
    "decision_function": lambda X: CLASSIFIER.decision_function(X),
    "score": lambda X: FITTED.score(X, "y"),
    "score of a column": lambda X: FITTED.score(X, column(X)),
    "score of classes": lambda X: CLASSIFIER.score(X, column(X)),
    "score with weights": lambda X: CLASSIFIER.score(X, column(X), sample_weight=column(X)),
    "plan": lambda X: linear(target="y").plan(X, column(X)),
    "plot": lambda X: FITTED.plot(public=(X, column(X)), runs=2) and None,
    "tune": lambda X: quietly.tune(logistic(), {"ridge": [0.1]}, X, "y", trials=2),
    "tune with rows apart": lambda X: quietly.tune(linear(), {"ridge": [0.1]}, *PUBLIC, trials=2, validation=(X, "y")),
    "tune on public rows": lambda X: quietly.tune(linear(), {"ridge": [0.1]}, *PUBLIC, public=(X, column(X))),
    "compare": lambda X: quietly.compare(linear(), X, "y", epsilons=[1.0], repeats=1),
    "compare a column": lambda X: quietly.compare(linear(), X, column(X), epsilons=[1.0], repeats=1),
    "scale": lambda X: quietly.StandardScaler(schema=SCHEMA.for_columns(["a"])).fit(X),
    "scale without a schema": lambda X: quietly.StandardScaler().fit(X),
    "transform": lambda X: quietly.StandardScaler(random_state=1).fit(NUMBERS[["a"]]).transform(X),
}
# Names become the model's where there is no schema, and its certificate says so: they are in the model, and in no message.
NAMES_ARE_PUBLIC = {"fit without a schema", "scale without a schema", "plot", "tune on public rows"}


def test_every_function_that_takes_a_table_is_here():
    """Public functions and methods with a parameter that is a table."""
    import inspect

    takes = {"X", "df", "public", "validation"}
    there = set()
    for name in quietly.__all__:
        thing = getattr(quietly, name)
        for method, function in inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else [(name, thing)]:
            if not method.startswith("_") and inspect.isfunction(function) and takes & set(inspect.signature(function).parameters):
                there.add(method)
    # fit_transform is scikit-learn's, and calls the two.
    assert there == {"fit", "predict", "predict_proba", "predict_log_proba", "decision_function", "score", "plan", "plot", "tune", "compare",
                     "transform", "fit_transform"}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_word_of_a_table_is_told(function):
    refused, done = set(), 0
    for table, container in itertools.product(TABLES, CONTAINERS):
        if function not in ("fit", "predict", "score of classes", "scale") and container not in ("pandas", "numpy objects") and table != "good":
            # All tables in all containers for four functions; for the others one of both.
            continue
        X = CONTAINERS[container](TABLES[table]())
        heard, result = told(lambda: FUNCTIONS[function](X))
        everything = heard if function in NAMES_ARE_PUBLIC else [*heard, *result]
        assert not marked(everything), (function, table, container, marked(everything)[0][:2000])
        error = any("Traceback" in text for text in heard)
        refused, done = refused | ({heard[0]} if error else set()), done + (not error)
    assert refused or done
    # Whatever is refused is refused by us.
    assert all(hasattr(quietly, name) for name in refused), refused


def test_the_mark_is_found():
    """Controls: exceptions, their contexts, warnings, prints and results that hold a cell are all found."""

    def chained():
        try:
            float(word())
        except ValueError:
            raise quietly.DataError("the table cannot be used") from None

    def noted():
        error = ValueError("no")
        error.add_note(word())
        raise error

    for leak in (lambda: float(word()), chained, noted, lambda: warnings.warn(word()), lambda: print(word()), lambda: {"a": word()},
                 lambda: logging.getLogger("other").error(word()), lambda: np.array([word()])):  # fmt: skip
        assert marked(sum(told(leak), []))
    frame = pd.DataFrame({word(): [0.5] * ROWS})
    heard, result = told(lambda: linear(schema=None, rows=ROWS).fit(frame, np.full(ROWS, 0.5)))
    assert marked(result) and not marked(heard)


def written(folder, X, form):
    path = folder / f"table.{form}"
    if form == "csv":
        X.to_csv(path, index=False)
    elif form == "headless.csv":
        X.to_csv(path, index=False, header=False)
    elif form == "mac.csv":
        path.write_bytes(X.to_csv(index=False).replace("\n", "\r").encode())
    elif form == "parquet":
        pa.parquet.write_table(pa.table(texts(X)), path)
    else:
        with pa.ipc.new_file(path, pa.table(texts(X)).schema) as file:
            file.write_table(pa.table(texts(X)))
    return path


@pytest.mark.parametrize("form", ["csv", "headless.csv", "mac.csv", "parquet", "arrow"])
def test_no_word_of_a_file_is_told(form, tmp_path):
    good = tmp_path / "good.csv"
    NUMBERS.assign(y=NUMBERS.a).to_csv(good, index=False)
    for table in ("good", "without names of the schema", "without a column", "more columns"):
        path = written(tmp_path, TABLES[table](), form)
        works = {
            "fit": lambda: linear().fit(path, "y"),
            "two files": lambda: linear().fit([good, path], "y"),
            "a star": lambda: linear(schema=quietly.Schema({"*": (0, 1), "y": (0, 1)}, rows=ROWS)).fit(path, "y"),
            "classify": lambda: logistic().fit(path, "y"),
            "predict": lambda: FITTED.predict(path),
            "score": lambda: FITTED.score(path, "y"),
            "probabilities": lambda: CLASSIFIER.predict_proba([path]),
            "tune": lambda: quietly.tune(linear(), {"ridge": [0.1]}, path, "y", validation=(path, "y"), trials=2),
            "a target that is not there": lambda: linear().fit(path, "zqq"),
            "as a schema": lambda: quietly.Schema.read(path),
            "as a model": lambda: quietly.load(path),
            "as a ledger": lambda: quietly.Ledger(path),
        }
        for name, work in works.items():
            heard, result = told(work)
            # Names of "*" are the model's.
            everything = heard if name == "a star" else [*heard, *result]
            assert not marked(everything), (name, table, marked(everything)[0][:2000])


def test_no_word_of_a_table_is_written(tmp_path):
    """Models, labels, plans and ledgers."""
    X = frame()
    with quietly.Ledger(tmp_path / "ledger", quietly.Budget(90, 1e-3)):
        for k, model in enumerate([linear(), quietly.KANRegressor(schema=SCHEMA, **NETWORK), linear(target="y")]):
            model.fit(X if k < 2 else X.drop(columns="y"), "y" if k < 2 else column(X))
            model.save(tmp_path / f"{k}.quietly")
            model.label(tmp_path / f"{k}.html")
            (tmp_path / f"{k}.pickle").write_bytes(pickle.dumps(model))
        path = tmp_path / "table.csv"
        X.to_csv(path, index=False)
        linear().fit(path, "y").save(tmp_path / "file.quietly")
        path.unlink()
    files = list(tmp_path.iterdir())
    assert len(files) == 11
    for file in files:
        assert not [form for form in FORMS if form in file.read_bytes()], file.name
