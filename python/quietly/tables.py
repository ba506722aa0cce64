"""Tables as they come: any container of columns becomes one `Table`, without a copy where that can be.

Shape, names and types are public and may be refused. Cells are not: whatever cannot be read as a number is missing, as in a
file, and the core decides what becomes of it.

Messages quote a name only if a schema, a model or a parameter says it. A name that only the table says may be a cell: a file without a
header has its first row there. Such columns have places in messages.
"""

import os
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from ._quietly import Schema, Table
from .errors import ColumnTypesError, DataError, DuplicateColumnsError, without_cells

Part = tuple[list[str] | None, Any]


@dataclass(frozen=True)
class Elsewhere:
    """A table whose rows are on other machines."""

    empty: Table
    """Its columns, without a row."""
    ask: Callable[[bytes], list[bytes]]
    """Takes a task to all rows, and returns the sums of all workers."""
    count: Callable[[], int]
    """How many rows there are: not private."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.empty.columns


def is_path(x: Any) -> bool:
    """Whether this names files rather than being a table."""
    if isinstance(x, (str, os.PathLike)):
        return True
    return isinstance(x, (list, tuple)) and bool(x) and all(isinstance(p, (str, os.PathLike)) for p in x)


def paths(x: Any) -> list[str]:
    """The paths as a list."""
    return [os.fspath(x)] if isinstance(x, (str, os.PathLike)) else [os.fspath(p) for p in x]


def column_names(x: Any) -> list[str] | None:
    """The names of the columns, if they all are texts."""
    _refuse_what_is_no_table(x)
    names = getattr(x, "column_names", None)
    if names is None:
        names = getattr(x, "columns", None)
    if names is None and hasattr(x, "__arrow_c_stream__"):
        # A reader says it in its schema; others hand out as many streams as one likes.
        names = getattr(getattr(x, "schema", None), "names", None)
        names = Table.names(x) if names is None or callable(names) else names
    if names is None or callable(names):
        return None
    names = list(names)
    texts = sum(isinstance(name, str) for name in names)
    if 0 < texts < len(names):
        raise DataError("names of columns must all be texts, or none of them: X has both; convert them, with X.columns.astype(str)")
    if not texts:
        return None
    if twice := [k for k, name in enumerate(names) if name in names[:k]] if len(set(names)) < len(names) else []:
        first = names.index(names[twice[0]])
        raise DuplicateColumnsError.coded("D05", f"columns {first + 1} and {twice[0] + 1} of X have the same name; rename all but one")
    return names


def called(name: str, known: Collection[str] | None, place: int) -> str:
    """What a message calls a column: by its name only if that is ``known`` to be public."""
    return f"column {name!r}" if known is not None and name in known else f"column {place + 1} of X"


def kinds(x: Any, names: list[str]) -> dict[str, str | None]:
    """What the columns of a table hold, as far as their types say so; ``names`` are for tables that have none."""
    if type(x).__module__.startswith("pandas"):
        return {str(name): kind(dtype) for name, dtype in x.dtypes.items()}
    schema = getattr(x, "schema", None)
    if type(x).__module__.startswith("polars") and schema is not None:
        return {name: kind(dtype) for name, dtype in schema.items()}
    if type(x).__module__.startswith("pyarrow") and schema is not None:
        return {field.name: kind(field.type) for field in schema}
    return dict.fromkeys(names, kind(x.dtype)) if isinstance(x, np.ndarray) else {}


def kind(dtype: Any) -> str | None:
    """What a column of this type holds: numbers, truths, texts or dates; None if its type does not say."""
    by_letter = {"b": "truths", "i": "numbers", "u": "numbers", "f": "numbers", "U": "texts", "S": "texts", "m": "dates", "M": "dates"}
    if (found := by_letter.get(getattr(dtype, "kind", "O"))) is not None:
        return found
    # Objects may hold anything, and categories of pandas are what their values are.
    name = str(dtype).lower()
    if name.startswith(("object", "category", "struct")):
        return None
    if name == "str":
        return "texts"
    starts = {
        "truths": ("bool",),
        "numbers": ("int", "uint", "float", "halffloat", "double", "decimal"),
        "texts": ("string", "large_string", "utf8", "categorical", "enum", "dictionary<values=string"),
        "dates": ("date", "time", "duration"),
    }
    return next((what for what, words in starts.items() if name.startswith(words)), None)


_TABLES = "give an array, a DataFrame of pandas or polars, a table of pyarrow, a sparse matrix, or the path of a file"


def _refuse_what_is_no_table(x: Any) -> None:
    """Types are public: what is almost a table is refused with a word on how to make it one."""
    module, name = type(x).__module__.partition(".")[0], type(x).__name__
    if module == "polars" and name == "LazyFrame":
        raise DataError("X is a LazyFrame, whose rows are not there yet: give X.collect(), or the path of its files")
    if module == "pyspark":
        raise DataError("X is a DataFrame of Spark, whose rows are on its workers: call quietly.spark.fit(X, estimator, y)")
    if isinstance(x, bytes) or hasattr(x, "read"):
        raise DataError("X is an open file, or bytes: give the path of the file as a text")
    if (module in ("pandas", "polars") and name == "Series") or (module == "pyarrow" and name.endswith("Array")):
        how = "pyarrow.table({'name': X})" if module == "pyarrow" else "X.to_frame()"
        raise DataError(
            f"Expected 2D array, got 1D array instead: X is one column, and a table is wanted; give {how} if there is one feature"
        )


def is_sparse(x: Any) -> bool:
    """Whether this is a matrix or an array of scipy.sparse, in any of its formats."""
    return hasattr(x, "tocsr") and hasattr(x, "nnz")


def array_of(x: Any) -> Any:
    """A table without names of columns, as an array."""
    return x if type(x).__module__.startswith("pandas") or is_sparse(x) else cells(x)


def cells(x: Any) -> Any:
    """Something without a type, as an array: of numbers if all of it is, or else of the very objects. Types of lists are not public: one cell
    makes them, and decides nothing."""
    if not isinstance(x, (list, tuple)):
        return np.asarray(x)
    try:
        array = np.asarray(x)
        if array.dtype.kind in "iuf":
            return array
    except Exception:
        pass
    if x and all(isinstance(row, (list, tuple)) for row in x) and len({len(row) for row in x}) == 1:
        array = np.empty((len(x), len(x[0])), dtype=object)
        for k, row in enumerate(x):
            for j, cell in enumerate(row):
                array[k, j] = cell
        return array
    if any(isinstance(row, np.ndarray) for row in x):
        return np.asarray(x)
    array = np.empty(len(x), dtype=object)
    for k, cell in enumerate(x):
        array[k] = cell
    return array


def parts_of(x: Any, names: list[str], wanted: list[str] | None = None) -> list[Part]:
    """The columns of a table under these names. Those that are not ``wanted`` may be left out."""
    if type(x).__module__.startswith("pandas"):
        columns = [x.iloc[:, k] for k in range(x.shape[1])]
        if wanted is not None:
            # Dates do no harm in columns that are not used.
            kept = [k for k, column in enumerate(columns) if names[k] in wanted or getattr(column.dtype, "kind", "O") not in "mM"]
            if len(kept) < len(columns):
                x, names, columns = x.iloc[:, kept], [names[k] for k in kept], [columns[k] for k in kept]
        if all(_is_number(column.dtype) for column in columns):
            return [(names, matrix(x.to_numpy(dtype=_float(x.dtypes), na_value=np.nan)))]
        places = [called(name, wanted, k) for k, name in enumerate(names)]
        return [part for name, column, place in zip(names, columns, places) for part in column_of(column, name, place)]
    if hasattr(x, "__arrow_c_stream__"):
        return [(None, x)]
    if is_sparse(x):
        return [(names, sparse(x))]
    array = np.asarray(x)
    if array.ndim == 1:
        raise DataError(
            "Expected 2D array, got 1D array instead: a table has rows and columns. "
            "Reshape your data, with array.reshape(-1, 1) if there is one feature"
        )
    if array.ndim != 2:
        what = f"has {array.ndim}" if array.ndim else f"is of type {type(array.item()).__name__}: {_TABLES}"
        raise DataError(f"a table has rows and columns, so X must have two dimensions, but {what}")
    if array.shape[1] == 0:
        raise DataError(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    if _is_number(array.dtype):
        return [(names, matrix(array))]
    if np.iscomplexobj(array):
        raise DataError("Complex data not supported: wanted real numbers")
    return [part for k, name in enumerate(names) for part in column_of(array[:, k], name, called(name, wanted, k))]


def column_of(y: Any, name: str, called: str) -> list[Part]:
    """One column under this name; ``called`` is what messages call it."""
    if getattr(getattr(y, "dtype", None), "kind", "O") in "mM":
        raise ColumnTypesError.coded("D13", f"{called} holds dates or times: give a number instead, such as days since some day")
    module = type(y).__module__
    if module.startswith("polars"):
        return [(None, y.to_frame(name))]
    if module.startswith("pyarrow"):
        import pyarrow

        return [(None, pyarrow.table({name: y}))]
    if module.startswith("pandas"):
        missing = _missing(y)
        y = y.to_numpy(dtype=np.float64, na_value=np.nan) if _is_number(y.dtype) else y.to_numpy(dtype=object)
        if y.dtype == object:
            return [([name], texts(y, missing))]
    array = np.asarray(y)
    if np.iscomplexobj(array):
        raise DataError("Complex data not supported: wanted real numbers")
    if _is_number(array.dtype):
        return [([name], matrix(array.reshape(-1, 1)))]
    return [([name], texts(array, None))]


def matrix(array: np.ndarray) -> np.ndarray:
    """Numbers as the core borrows them: copied only if they are no floats, or do not lie in one piece."""
    dtype = array.dtype if array.dtype in (np.float32, np.float64) and array.dtype.isnative else np.float64
    with np.errstate(over="ignore"):
        array = np.asarray(array, dtype=dtype)
    if not (array.flags.c_contiguous or array.flags.f_contiguous) or not array.flags.aligned:
        array = np.ascontiguousarray(array)
    return array


def sparse(x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sparse matrix as the core borrows it: by rows, in order, each value once. Made so, as a copy, if it is not."""
    if x.ndim != 2:
        raise DataError(f"a table has rows and columns, so X must have two dimensions, but has {x.ndim}")
    if x.shape[1] == 0:
        raise DataError(f"0 feature(s) (shape={x.shape}) while a minimum of 1 is required.")
    if x.dtype.kind == "c":
        raise DataError("Complex data not supported: wanted real numbers")
    rows = x.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is x else rows
        rows.sum_duplicates()
    dtype = rows.dtype if rows.dtype in (np.float32, np.float64) and rows.dtype.isnative else np.float64
    return rows.indptr, rows.indices, np.ascontiguousarray(rows.data, dtype=dtype)


def texts(cells: np.ndarray, missing: np.ndarray | None) -> list[str | None]:
    """Cells as a file would hold them; whatever is not text, number or truth is missing."""
    gone = missing if missing is not None else np.zeros(len(cells), dtype=bool)
    return [None if skip else _text(cell) for cell, skip in zip(cells.tolist(), gone)]


def _text(cell: Any) -> str | None:
    if not isinstance(cell, (str, int, float, bool, np.number, np.bool_, Decimal)):
        return None
    try:
        return str(cell).encode("utf-8", "replace").decode()
    except Exception:
        # Such as an integer of more digits than Python writes.
        return None


def _missing(column: Any) -> np.ndarray:
    """Which cells of a column of pandas are missing; those that cannot be asked are."""
    try:
        return np.asarray(column.isna().to_numpy(), dtype=bool)
    except Exception:
        pass
    import pandas

    def gone(cell: Any) -> bool:
        try:
            return bool(pandas.isna(cell))
        except Exception:
            return True

    return np.fromiter(map(gone, column.to_numpy(dtype=object)), dtype=bool, count=len(column))


def _is_number(dtype: Any) -> bool:
    # Truths are words, as in a file: a schema that says values = [false, true] means them, and not 0 and 1.
    return getattr(dtype, "kind", "O") in "iuf" and not str(dtype).startswith(("category", "string", "interval"))


def _float(dtypes: Any) -> Any:
    return np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64


_described: dict[int, tuple[weakref.ref[np.ndarray], "Described"]] = {}


@dataclass(frozen=True)
class Described:
    """What is public of an array that a scaler made: what its columns lie within, and the schema that it was made with."""

    ranges: list[tuple[float, float]]
    schema: Schema


def describe(x: np.ndarray, ranges: list[tuple[float, float]], schema: Schema) -> None:
    """Remembers, as long as this very array lives, what is public of it."""
    place = id(x)
    _described[place] = (weakref.ref(x, lambda _: _described.pop(place, None)), Described(ranges, schema))


def described(x: Any) -> Described | None:
    """What is remembered of this very array."""
    known, what = _described.get(id(x), (None, None))
    return what if known is not None and known() is x else None


def table(parts: list[Part]) -> Table:
    """All parts side by side."""
    return Table.of(parts)


@without_cells
def like_the_fitted(x: Any, columns: list[str], who: str) -> Table:
    """A table in memory for a model that was fitted on these columns: by their names, or in their order if it has none."""
    names = column_names(x)
    if names is None:
        x = array_of(x)
        if x.ndim == 2 and x.shape[1] != len(columns):
            raise DataError(f"X has {x.shape[1]} features, but {who} is expecting {len(columns)} features as input")
        names = columns
    found = table(parts_of(x, names, columns))
    if not found.rows:
        raise DataError("0 sample(s) (an empty table) while a minimum of 1 is required.")
    return found


def without_names(schema: object, work: Callable[[], Any]) -> Any:
    """Runs work. Where no schema says which names are public, an error about the types of columns names none of them."""
    try:
        return work()
    except ColumnTypesError:
        if schema is not None:
            raise
    # Raised out here, it has no context that tells the names.
    raise ColumnTypesError.coded("D13", "the table has columns of types that cannot be read; wanted numbers, texts or booleans")
