"""Rows that Spark keeps: the same bits. A stand-in shows it on every machine, and Spark itself where it is installed."""

import json
import os
import pathlib
import pickle
import re
import sys

import pyarrow as pa
import pytest

import quietly

CASES = [
    (quietly.AutoRegressor, "pay", {"epsilon": 20.0}),
    (quietly.LinearRegression, "pay", {}),
    (quietly.ReLURegression, "pay", {}),
    (quietly.LinearRegression, "pay", {"expand": "splines=5", "epsilon": 8.0}),
    (quietly.LinearRegression, "pay", {"constraint": "l2", "radius": 2.0, "method": "dp-gd", "steps": 8}),
    (quietly.LogisticRegression, "income", {"method": "dp-gd", "radius": 3.0, "constraint": "l2", "steps": 8}),
    (quietly.LogisticRegression, "income", {"method": "dp-gd", "steps": 5, "neighbours": "replace-one"}),
    (quietly.LinearSVC, "income", {"method": "dp-gd", "steps": 5}),
    (quietly.LogisticRegression, "income", {"method": "frank-wolfe", "constraint": "l1", "radius": 2.0, "steps": 5}),
    (quietly.QuantileRegressor, "pay", {"method": "dp-gd", "steps": 5}),
    (quietly.LinearRegression, "pay", {"method": "adassp"}),
    (quietly.LinearRegression, "pay", {"method": "boosted-adassp"}),
    (quietly.KANRegressor, "pay", {"epochs": 5, "sampler": "full-batch", "noise_correlation": "independent"}),
]
NAMES = [f"{kind.__name__} {wishes}"[:50] for kind, _, wishes in CASES]
COLUMNS = ["age", "hours", "sex", "income", "kind", "pay"]


class Column:
    """A column under another name."""

    def __init__(self, name):
        self.name = name

    def alias(self, other):
        self.other = other
        return self


class StandIn:
    """What quietly uses of a DataFrame of Spark, over parts of a table: each is asked in batches, and work travels as bytes."""

    def __init__(self, parts, broken=None, asked=None):
        self.parts, self.broken, self.columns = parts, broken, parts[0].column_names
        self.asked = [] if asked is None else asked

    def select(self, *columns):
        there, named = [column.name for column in columns], [column.other for column in columns]
        return StandIn([part.select(there).rename_columns(named) for part in self.parts], self.broken, self.asked)

    @property
    def sparkSession(self):
        return self

    def range(self, rows):
        return StandIn([pa.table({"id": list(range(rows))})])

    def limit(self, rows):
        return StandIn([part.slice(0, rows) for part in self.parts[:1]])

    def toArrow(self):
        return self.parts[0]

    def count(self):
        return sum(part.num_rows for part in self.parts)

    def mapInArrow(self, work, schema):
        assert schema in ("sum binary", "version string")
        self.asked.append(tuple(self.columns))
        work = pickle.dumps(work)
        all_of = lambda part: pickle.loads(work)(iter(part.to_batches(max_chunksize=97)))
        self.answers = [batch for part in self.parts for batch in all_of(part)]
        return self

    def collect(self):
        if self.broken:
            raise self.broken
        return [(answer,) for batch in self.answers for answer in batch.column(0).to_pylist()]


@pytest.fixture(autouse=True)
def columns_of_stand_ins(request, monkeypatch):
    if "spark" not in request.fixturenames:
        monkeypatch.setattr(quietly.spark, "_column", Column)


def arrow(people):
    return pa.Table.from_pandas(people[COLUMNS], preserve_index=False)


def parts(people):
    """Parts in another order, one of them empty."""
    whole = arrow(people)
    return [whole.slice(2000), whole.slice(0, 0), whole.slice(0, 1), whole.slice(1, 1999)]


def learnt(estimator, path):
    estimator.save(path)
    model = json.loads(path.read_text())
    # One of them was told the target's name by a parameter.
    return {name: value for name, value in model.items() if name not in ("parameters", "digest")}


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark", reason="pyspark is not installed here: make test-spark")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = made.config("spark.sql.execution.arrow.maxRecordsPerBatch", "313").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def check_same_bits(df, kind, target, wishes, people, schema, tmp_path):
    wishes = {"epsilon": 4.0, "schema": schema(target), "random_state": 11, **wishes}
    here = kind(**wishes, target=target).fit(people[["age", "hours", "sex"]], people[target])
    there = quietly.spark.fit(df, kind(**wishes), target)
    assert isinstance(there, kind)
    mine, theirs = learnt(here, tmp_path / "here.quietly"), learnt(there, tmp_path / "there.quietly")
    assert theirs == mine
    assert (there.predict(people[["age", "hours", "sex"]]) == here.predict(people[["age", "hours", "sex"]])).all()


@pytest.mark.parametrize("kind, target, wishes", CASES, ids=NAMES)
def test_a_stand_in_gives_the_same_bits(kind, target, wishes, people, schema, tmp_path):
    df = StandIn(parts(people))
    check_same_bits(df, kind, target, wishes, people, schema, tmp_path)
    # Columns that the schema does not have are not read.
    assert set(df.asked) == {("c0", "c1", "c2", "c3")}


@pytest.mark.parametrize("kind, target, wishes", CASES, ids=NAMES)
def test_spark_gives_the_same_bits(spark, kind, target, wishes, people, schema, tmp_path):
    df = spark.createDataFrame(people[COLUMNS].sample(frac=1, random_state=3)).repartition(5)
    check_same_bits(df, kind, target, wishes, people, schema, tmp_path)


def test_a_row_less_is_another_model(people, schema):
    """The control: answers that miss a row are seen in the weights."""
    fit = lambda df: quietly.spark.fit(df, quietly.LinearRegression(epsilon=4.0, schema=schema("pay"), random_state=11), "pay").coef_
    assert (fit(StandIn([arrow(people)])) != fit(StandIn([arrow(people).slice(1)]))).any()


@pytest.mark.parametrize(
    "kind, target, wishes",
    [
        (quietly.LinearRegression, "pay", {"method": "one-pass"}),
        (quietly.LogisticRegression, "income", {}),
        (quietly.LogisticRegression, "income", {"method": "dp-sgd"}),
        (quietly.KANRegressor, "pay", {"epochs": 5, "sampler": "poisson"}),
        (quietly.LinearRegression, "pay", {"expand": "fourier"}),
    ],
)
def test_what_does_not_ask_every_row_is_refused_for_free(kind, target, wishes, people, schema, tmp_path):
    df = StandIn(parts(people))
    with quietly.Ledger(tmp_path / "people.ledger", quietly.Budget(5.0, 1e-4)) as ledger:
        with pytest.raises(quietly.ParameterError):
            quietly.spark.fit(df, kind(epsilon=1.0, schema=schema(target), **wishes), target)
    assert ledger.spent == (0.0, 0.0) and not df.asked


def test_a_fit_is_charged_before_it_asks(people, schema, tmp_path):
    with quietly.Ledger(tmp_path / "people.ledger", quietly.Budget(1.5, 1e-4)) as ledger:
        model = quietly.LinearRegression(epsilon=1.0, schema=schema("pay"))
        quietly.spark.fit(StandIn(parts(people)), model, "pay")
        assert ledger.spent[0] == pytest.approx(1.0)
        df = StandIn(parts(people))
        with pytest.raises(quietly.BudgetExceededError):
            quietly.spark.fit(df, model, "pay")
        assert not df.asked


def test_refusals_and_failures_say_no_value(people, schema):
    linear = lambda **wishes: quietly.LinearRegression(**{"epsilon": 1.0, "schema": schema("pay"), **wishes})
    df = StandIn(parts(people))
    for refused, work in [
        (quietly.DataError, lambda: quietly.spark.fit(people, linear(), "pay")),
        (quietly.DataError, lambda: quietly.spark.fit(df, linear(), people["pay"])),
        (quietly.ParameterError, lambda: quietly.spark.fit(df, "linear", "pay")),
        (quietly.ParameterError, lambda: quietly.spark.fit(df, quietly.LinearRegression, "pay")),
        (quietly.ParameterError, lambda: quietly.spark.fit(df, quietly.StandardScaler(), "pay")),
        (quietly.DataError, lambda: quietly.spark.fit(df, linear(schema=None), "pay")),
        (quietly.DataError, lambda: quietly.spark.fit(df, linear(schema=quietly.Schema(age=(0, 100), pay=(0, 100))), "pay")),
        (quietly.QuietlyError, lambda: quietly.spark.fit(df, linear(), "wage")),
        (quietly.MissingColumnsError, lambda: quietly.spark.fit(StandIn([arrow(people).drop(["age"])]), linear(), "pay")),
    ]:
        with pytest.raises(refused):
            work()
    assert not df.asked
    dates = arrow(people).set_column(0, "age", pa.array([0] * len(people), pa.date32()))
    with pytest.raises(quietly.ColumnTypesError):
        quietly.spark.fit(StandIn([dates]), linear(), "pay")
    with pytest.raises(quietly.RemoteError) as failed:
        quietly.spark.fit(StandIn(parts(people), broken=RuntimeError("cannot cast 4711.25")), linear(), "pay")
    assert "RuntimeError" in str(failed.value) and "4711" not in str(failed.value)
    assert failed.value.__cause__ is None and failed.value.__context__ is None
    loud = RuntimeError("cannot cast 4711.25")
    loud.getCondition = lambda: 1 / 0
    with pytest.raises(quietly.RemoteError) as failed:
        quietly.spark.fit(StandIn(parts(people), broken=loud), linear(), "pay")
    assert failed.value.__context__ is None
    with pytest.raises(KeyboardInterrupt):
        quietly.spark.fit(StandIn(parts(people), broken=KeyboardInterrupt()), linear(), "pay")


def test_large_tables_take_full_batch_where_rows_have_no_places(people, schema):
    model = quietly.LinearRegression(epsilon=1.0, schema=schema("pay"), rows=10**10, random_state=1)
    assert model.plan(target="pay").method == "one-pass"
    assert quietly.spark.fit(StandIn(parts(people)), model, "pay").plan_.method == "full-batch"


def test_rows_are_counted_under_replace_one_alone_and_after_the_charge(people, schema, tmp_path, monkeypatch):
    counted = []
    monkeypatch.setattr(StandIn, "count", lambda df: counted.append(ledger.spent[0]) or sum(part.num_rows for part in df.parts))
    for neighbours in ("add-remove", "replace-one"):
        with quietly.Ledger(tmp_path / f"{neighbours}.ledger", quietly.Budget(5.0, 1e-4, neighbours)) as ledger:
            model = quietly.LogisticRegression(epsilon=1.0, schema=schema("income"), method="dp-gd", steps=3, neighbours=neighbours)
            quietly.spark.fit(StandIn(parts(people)), model, "income")
    assert counted == [pytest.approx(1.0)]


def test_types_that_hold_none_of_the_labels_are_refused(people, schema):
    numbers = arrow(people).set_column(3, "income", pa.array([0.0] * len(people)))
    df = StandIn([numbers])
    with pytest.raises(quietly.DataError, match="the schema lists texts"):
        quietly.spark.fit(df, quietly.LogisticRegression(epsilon=1.0, schema=schema("income"), method="dp-gd"), "income")
    assert not df.asked


def test_odd_names_and_columns_that_nobody_asked_for(spark, people, schema):
    from pyspark.sql import functions as f

    odd = quietly.Schema({"a.b": (0, 100), "h`s": (0, 80), "pay": (0, 100)}, rows=3000)
    table = people[["age", "hours", "pay"]].rename(columns={"age": "a.b", "hours": "h`s"})
    df = spark.createDataFrame(table).withColumn("e", f.expr("array(struct(1L as id, 2.0D as amount))"))
    model = lambda: quietly.LinearRegression(epsilon=4.0, schema=odd, random_state=3)
    there = quietly.spark.fit(df.withColumn("e2", f.col("e")), model(), "pay")
    here = model().fit(table[["a.b", "h`s"]], table["pay"])
    assert (there.coef_ == here.coef_).all() and there.n_features_in_ == 2


def test_spark_that_fails_says_no_value(spark, people, schema, capfd):
    linear = quietly.LinearRegression(epsilon=1.0, schema=schema("pay"))
    from pyspark.sql import functions as f

    df = spark.createDataFrame(people[COLUMNS]).withColumn("age", f.col("sex").cast("double"))
    with pytest.raises(quietly.RemoteError) as failed:
        quietly.spark.fit(df, linear, "pay")
    assert "CAST_INVALID_INPUT" in str(failed.value) and "'F'" not in str(failed.value)
    assert failed.value.__context__ is None
    out, err = capfd.readouterr()
    assert "'F'" not in out + err


def test_the_guide_runs(spark, capsys):
    page = pathlib.Path(__file__).parents[2] / "docs" / "cluster.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    exec(compile(block, str(page), "exec"), {})
    assert "epsilon" in capsys.readouterr().out


def test_a_frame_of_spark_is_sent_to_the_other_door(spark, people):
    with pytest.raises(quietly.DataError, match="quietly.spark.fit"):
        quietly.LinearRegression().fit(spark.createDataFrame(people[COLUMNS]), "pay")
