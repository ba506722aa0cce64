"""Every way to be refused, by name. The sentences are those of the command line; none holds a data value.

Eleven groups, and under them one name for each thing that can be wrong; catch whichever you need.

===================  ============  ==============================================================================
group                also          what is in it
===================  ============  ==============================================================================
ParameterError       ValueError    NoiseParameterError, UnsaidError
BudgetError          ValueError    UnsupportedError, TooManyError, UnreachableError, BudgetExceededError,
                                   RefitError, UncoveredStepError
SchemaError          ValueError    SchemaSyntaxError, UnfinishedSchemaError, ImpossibleSchemaError
DataError            ValueError    DamagedError, NoHeaderError, DuplicateColumnsError, DifferentColumnsError,
                                   MissingColumnsError, UnknownColumnsError, TargetError, NoTargetError,
                                   ColumnTypesError, RecordBatchError, NotParquetError, FeatureCountError,
                                   DelimiterError, NoFeaturesError, RepeatedFilesError
TooLargeError        ValueError
ModelError           ValueError
FileError            OSError       UnreadableError, NoFilesError
NoiseError           RuntimeError  NoiseParameterError, NoRandomnessError, RandomnessExhaustedError
RemoteError          RuntimeError
FitInterruptedError  RuntimeError
PackageError         ImportError   a package that is used if it is there
InternalError        RuntimeError  a fault of quietly's own
===================  ============  ==============================================================================
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

# Old names, and what they are called now.
RENAMED = {
    "BatchesError": "RecordBatchError",
    "ElsewhereError": "RemoteError",
    "ExhaustedError": "RandomnessExhaustedError",
    "SpentError": "BudgetExceededError",
    "StoppedError": "FitInterruptedError",
}

P = ParamSpec("P")
R = TypeVar("R")


class QuietlyError(Exception):
    """Why there is no result. ``code`` is what ``quietly explain`` takes."""

    code: str | None = None

    @classmethod
    def coded(cls, code: str, message: str) -> Self:
        """The same with the code of the command line."""
        error = cls(message)
        error.code = code
        return error


class ParameterError(QuietlyError, ValueError):
    """A parameter is outside its domain, or does not go with the others."""


class BudgetError(QuietlyError, ValueError):
    """No theorem covers the request, or no noise meets the budget."""


class UnsaidError(ParameterError):
    """A loaded model would be fitted again, and its file does not say a parameter of the first fit."""

    code = "P03"


class RefitError(BudgetError):
    """Something would fit a model several times on the same rows, and pay every time."""

    code = "P02"


class UncoveredStepError(BudgetError):
    """A step of the pipeline before the model learns from the rows without noise."""

    code = "P01"


class BudgetExceededError(BudgetError):
    """A ledger has less left than this would cost; the table was not read."""


class UnsupportedError(BudgetError):
    """No theorem covers this under this neighbouring relation."""


class TooManyError(BudgetError):
    """So many steps or records cannot be accounted for."""


class UnreachableError(BudgetError):
    """No amount of noise meets the budget."""


class SchemaError(QuietlyError, ValueError):
    """The schema says something impossible."""


class SchemaSyntaxError(SchemaError):
    """The schema is not TOML."""


class UnfinishedSchemaError(SchemaError):
    """The schema still has question marks."""


class ImpossibleSchemaError(SchemaError):
    """The schema contradicts itself."""


class DataError(QuietlyError, ValueError):
    """The table cannot be used: its columns, types or shape."""


class DamagedError(DataError):
    """A file is not what its format says, or ends too early."""


class NoHeaderError(DataError):
    """A file has no line of column names."""


class DuplicateColumnsError(DataError):
    """Two columns have one name."""


class DifferentColumnsError(DataError):
    """Two files of one table have different columns."""


class MissingColumnsError(DataError):
    """The table lacks columns that the schema or the model names."""


class UnknownColumnsError(DataError):
    """The schema does not describe a column that was named."""


class TargetError(DataError):
    """This column cannot be predicted, or not by this model."""


class NoTargetError(TargetError):
    """There is no column to predict."""


class ColumnTypesError(DataError):
    """A column has a type that cannot be read as the schema says."""


class RecordBatchError(DataError):
    """The record batches in memory are not one table."""


class NotParquetError(DataError):
    """Only Parquet can be read in parts."""


class RepeatedFilesError(DataError):
    """The same rows may be in the table twice."""


class FeatureCountError(DataError):
    """libsvm text does not say how many features it has: the schema must."""


class DelimiterError(DataError):
    """Fields cannot be separated by this."""


class NoFeaturesError(DataError):
    """There is nothing to learn from."""


class TooLargeError(QuietlyError, ValueError):
    """The table or the model is too large for the request."""


class ModelError(QuietlyError, ValueError):
    """This is no model file, or it is damaged, or made by a newer version."""


class FileError(QuietlyError, OSError):
    """A file cannot be read or written."""


class UnreadableError(FileError):
    """A file or folder cannot be opened."""


class NoFilesError(FileError):
    """There is no table in a folder or behind a pattern."""


class NoiseError(QuietlyError, RuntimeError):
    """There is no noise, so nothing was released."""


class NoiseParameterError(NoiseError, ParameterError):
    """Noise of such a scale cannot be made."""


class NoRandomnessError(NoiseError):
    """The operating system gave no randomness."""


class RandomnessExhaustedError(NoiseError):
    """A draw used up its random bits: the generator must be broken."""


class RemoteError(QuietlyError, RuntimeError):
    """Rows on other machines could not be summed."""


class FitInterruptedError(QuietlyError, RuntimeError):
    """The fit was interrupted; nothing was saved."""


class PackageError(QuietlyError, ImportError):
    """A package that this needs is not installed; the message says how to install it."""


class InternalError(QuietlyError, RuntimeError):
    """A fault of quietly. It says where, for a report, and nothing of the table."""


def __getattr__(name: str) -> Any:
    if name in RENAMED:
        raise AttributeError(f"quietly.errors has no {name}: it is called {RENAMED[name]}", name=name)
    raise AttributeError(f"module 'quietly.errors' has no attribute {name!r}")


def without_cells(work: Callable[P, R]) -> Callable[P, R]:
    """For functions that handle tables. If another library fails in there, none of what it says is passed on: it may quote cells."""

    @wraps(work)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return work(*args, **kwargs)
        except (QuietlyError, Warning, MemoryError):
            raise
        except Exception as error:
            kind, place = type(error).__name__, _place(error)
        # Raised out here, it has no context that tells what is left out.
        raise DataError(f"the table cannot be used ({kind} at {place}); what the exception says is left out, as it may hold a value of the table")

    return guarded


def _place(error: Exception) -> str:
    """The last line of quietly that an exception went through."""
    place, frame = "an unknown place", error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__", "").startswith("quietly."):
            place = f"{frame.tb_frame.f_globals['__name__']}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place
