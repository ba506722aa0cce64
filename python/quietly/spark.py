"""Rows that Spark keeps: the same model, certificate and bits as on one machine.

Workers of Spark answer every question with sums of integers over the rows that they have; this process adds them up, adds the noise
and signs. quietly must be installed wherever Spark has workers, in the same version.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ._quietly import Schema, Table, Worker
from .errors import DataError, ElsewhereError, ParameterError
from .tables import Elsewhere, table

if TYPE_CHECKING:
    from .estimators import _Private

__all__ = ["fit"]

_Estimator = TypeVar("_Estimator", bound="_Private")


def fit(df: Any, estimator: _Estimator, y: str) -> _Estimator:
    """Fits an estimator to a DataFrame of Spark.

    The DataFrame is read once for every question, about 25 times for ``LinearRegression``: ``df.cache()`` keeps what it is made of.

    What is protected is a row of the DataFrame, so each must be made of one row of the table alone. ``limit``, ``sample`` or a random number may
    give other rows for each question, and one person more may change many of them: write such a table to files first, and read it from there.

    Parameters
    ----------
    df : DataFrame of Spark
        The table. Its rows may come in any order, and need not fit into this machine.
    estimator : estimator
        What to fit, with a schema, and rows in it or in the estimator. Its method must ask every row in every step: full-batch, which is what
        ``LinearRegression`` and ``ReLURegression`` take; ``method="dp-gd"`` or ``"frank-wolfe"`` for the others.
    y : str
        The column to predict.

    Returns
    -------
    estimator
        The same, fitted.

    Raises
    ------
    ElsewhereError
        If Spark fails. What it says of that may hold values of rows, and stays in its own logs.
    """
    missing = [name for name in ("mapInArrow", "limit", "select", "columns") if not hasattr(df, name)]
    if missing:
        raise DataError(f"df must be a DataFrame of Spark, but is of type {type(df).__name__}: estimator.fit(X, y) takes other tables")
    if not hasattr(estimator, "_elsewhere"):
        raise ParameterError(f"estimator must be one of quietly's, such as quietly.LinearRegression(...), but is of type {type(estimator).__name__}")
    if not isinstance(y, str):
        raise DataError("y must be the name of a column: on Spark, features and target are one DataFrame")
    empty = table([(None, _asked(lambda: df.limit(0).toArrow()))])
    schema = estimator.schema if isinstance(estimator.schema, Schema) else None
    named = [] if schema is None or "*" in schema.columns else schema.columns
    wanted = [name for name in df.columns if not named or name in named]
    rows = df.select(*[f"`{name.replace('`', '``')}`" for name in wanted])

    def ask(errand: bytes) -> list[bytes]:
        answers = _asked(lambda: rows.mapInArrow(partial(_answer, errand), "answer binary").collect())
        return [bytes(answer[0]) for answer in answers]

    estimator._elsewhere(Elsewhere(empty, ask, lambda: _asked(df.count)), y)
    return estimator


def _answer(errand: bytes, batches: Iterator[Any]) -> Iterator[Any]:
    """What a worker of Spark does with its rows: one answer for all of them."""
    import pyarrow

    worker = Worker(errand)
    for batch in batches:
        worker.ask(Table.of([(None, batch)]))
    yield pyarrow.RecordBatch.from_pydict({"answer": pyarrow.array([worker.answer()], pyarrow.binary())})


def _asked(work: Any) -> Any:
    try:
        return work()
    except Exception as error:
        # What Spark says may quote cells, so none of it is passed on.
        kind, why = type(error).__name__, "its own logs say why"
        if "No module named 'quietly" in str(error):
            why = "quietly is not installed where its workers are"
        told = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
        condition = told() if callable(told) else None
        what = f"{kind}, {condition}" if isinstance(condition, str) else kind
    raise ElsewhereError(f"Spark gave no answer ({what}): {why}. No model was made")
