"""Rows that Spark keeps: the same model, certificate and bits as on one machine.

Workers of Spark answer every query with sums of integers over the rows that they have; this process adds them up, adds the noise
and signs. quietly must be installed wherever Spark has workers, in the same version.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ._quietly import Schema, Table, Worker, __version__
from .errors import DataError, ParameterError, RemoteError
from .tables import Elsewhere, kind, table

if TYPE_CHECKING:
    from .estimators import _Private

__all__ = ["fit"]

_Estimator = TypeVar("_Estimator", bound="_Private")


def fit(df: Any, estimator: _Estimator, y: str) -> _Estimator:
    """Fits an estimator to a DataFrame of Spark.

    The DataFrame is read once for every query, about 25 times for ``LinearRegression``: ``df.cache()`` keeps what it is made of.

    What is protected is a row of the DataFrame, so each must be made of one row of the table alone. ``limit``, ``sample`` or a random number may
    give other rows for each query, and one person more may change many of them: write such a table to files first, and read it from there.

    Parameters
    ----------
    df : DataFrame of Spark
        The table. Its rows may come in any order, and need not fit into this machine.
    estimator : estimator
        What to fit, with a schema, and rows in it or in the estimator. Its method must ask every row in every step: ``method="full-batch"``, which
        ``"auto"`` is here for ``LinearRegression`` and ``ReLURegression``; ``"dp-gd"`` or ``"frank-wolfe"`` for the others.
    y : str
        The column to predict.

    Returns
    -------
    estimator
        The same, fitted.

    Raises
    ------
    RemoteError
        If Spark fails. What it says of that may hold values of rows, and stays in its own logs.
    """
    _check(df, estimator, y)
    wanted = [name for name in df.columns if name == y or _is_known(estimator.schema, name)]
    # Names of Spark's own: those of tables may have dots in them.
    selected = _asked(lambda: df.select(*[_column(name).alias(f"c{k}") for k, name in enumerate(wanted)]))
    columns = _asked(lambda: selected.limit(0).toArrow()).rename_columns(wanted)
    _check_types(columns.schema, estimator.schema)
    _probe(df.sparkSession)

    def run(task: bytes) -> list[bytes]:
        work = partial(_sum, task, wanted)
        sums: list[bytes] = _asked(lambda: [bytes(row[0]) for row in selected.mapInArrow(work, "sum binary").collect()])
        return sums

    return estimator._fit(Elsewhere(table([(None, columns)]), run, lambda: int(_asked(selected.count))), y, [])


def _check(df: Any, estimator: Any, y: Any) -> None:
    if not all(hasattr(df, name) for name in ("mapInArrow", "limit", "select", "columns")):
        how = "df.to_spark()" if hasattr(df, "to_spark") else "estimator.fit(X, y) takes other tables"
        raise DataError(f"df must be a DataFrame of Spark, but is of type {type(df).__name__}: {how}")
    if not hasattr(df, "toArrow"):
        raise DataError("df is a DataFrame of a Spark before 4.0, which is not enough: quietly takes pyspark 4")
    if not isinstance(estimator, _private()):
        got = estimator if isinstance(estimator, type) else type(estimator)
        raise ParameterError(f"estimator must be one of quietly's, such as quietly.LinearRegression(...), but is {got.__name__}")
    if not isinstance(y, str):
        raise DataError("y must be the name of a column: on Spark, features and target are one DataFrame")
    if y not in df.columns:
        raise DataError(f"df has no column {y!r}")


def _private() -> type:
    from .estimators import _Private

    return _Private


def _check_types(columns: Any, schema: Any) -> None:
    from .estimators import check_kind

    for column in columns if isinstance(schema, Schema) else ():
        check_kind(schema.holds(column.name), kind(column.type), f"column {column.name!r}")


def _is_known(schema: Any, name: str) -> bool:
    return not isinstance(schema, Schema) or "*" in schema.columns or name in schema.columns


def _column(name: str) -> Any:
    from pyspark.sql import functions

    return functions.col(f"`{name.replace('`', '``')}`")


def _sum(task: bytes, names: list[str], batches: Iterator[Any]) -> Iterator[Any]:
    """What a worker of Spark does with its rows: one sum over all of them."""
    import pyarrow

    worker = Worker(task)
    for batch in batches:
        worker.add(Table.of([(None, batch.rename_columns(names))]))
    yield pyarrow.RecordBatch.from_pydict({"sum": pyarrow.array([worker.sum()], pyarrow.binary())})


def _version(batches: Iterator[Any]) -> Iterator[Any]:
    """The version of quietly where a worker is."""
    import pyarrow

    for _ in batches:
        pass
    yield pyarrow.RecordBatch.from_pydict({"version": [__version__]})


def _probe(session: Any) -> None:
    """Finds out, before anything is spent, whether workers have quietly, and in this version. No row of the table is read."""
    found = {row[0] for row in _asked(lambda: session.range(1).mapInArrow(_version, "version string").collect())}
    if others := found - {__version__}:
        raise RemoteError(f"the workers of Spark have quietly {', '.join(sorted(others))}, and here it is {__version__}: all must be of one version")


def _asked(work: Callable[[], Any]) -> Any:
    """What Spark answers. If it fails, none of what it says is passed on: it may quote cells."""
    failed = None
    with _without_words():
        try:
            return work()
        except Exception as error:
            failed = error
    # Nothing that is raised from here on has it as its context, and no frame keeps it.
    told, failed = _told(failed), None
    raise RemoteError(told)


def _told(error: Exception) -> str:
    kind, why, condition = type(error).__name__, "its own logs say why", None
    try:
        if "No module named 'quietly" in str(error):
            why = "quietly is not installed where its workers are"
        told = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
        condition = told() if callable(told) else None
    except Exception:
        pass
    what = f"{kind}, {condition}" if isinstance(condition, str) else kind
    return f"Spark did not respond ({what}): {why}. No model was made; what a ledger was charged stays charged"


@contextmanager
def _without_words() -> Iterator[None]:
    """Spark's own loggers in this process print cells that it could not read."""
    loggers = [logging.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before):
            logger.disabled = was
