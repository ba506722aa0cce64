"""Differentially private learning on sensitive tables: budget in, model out, certificate attached.

>>> import quietly
>>> schema = quietly.Schema(age=(0, 100), sex=["F", "M"], income=["low", "high"], rows=30_000)
>>> model = quietly.LogisticRegression(epsilon=1.0, schema=schema)
"""

from typing import TYPE_CHECKING, Any

from . import accounting, noise
from ._quietly import Budget, Certificate, Plan, Schema, __version__
from .errors import (
    BudgetError,
    ColumnTypesError,
    DamagedError,
    DataError,
    DelimiterError,
    DifferentColumnsError,
    DuplicateColumnsError,
    ElsewhereError,
    ExhaustedError,
    FeatureCountError,
    FileError,
    ImpossibleSchemaError,
    InternalError,
    MissingColumnsError,
    ModelError,
    NoFeaturesError,
    NoFilesError,
    NoHeaderError,
    NoRandomnessError,
    NoTargetError,
    NotParquetError,
    NoiseError,
    NoiseParameterError,
    PackageError,
    ParameterError,
    QuietlyError,
    RecordBatchError,
    RefitError,
    RepeatedFilesError,
    SchemaError,
    SchemaSyntaxError,
    SpentError,
    StoppedError,
    TargetError,
    TooLargeError,
    TooManyError,
    UncoveredStepError,
    UnfinishedSchemaError,
    UnknownColumnsError,
    UnreachableError,
    UnreadableError,
    UnsaidError,
    UnsupportedError,
)
from .ledger import Ledger

if TYPE_CHECKING:
    from . import spark as spark
    from .comparison import Comparison, compare
    from .loading import load
    from .models import (
        HuberRegressor,
        KANClassifier,
        KANRegressor,
        LinearRegression,
        LinearSVC,
        LogisticRegression,
        QuantileRegressor,
        ReLURegression,
    )
    from .scaler import StandardScaler
    from .tuning import tune

# These need scikit-learn, which takes a while to import: they come when they are asked for.
_LATER = {
    "Comparison": "comparison",
    "HuberRegressor": "models",
    "KANClassifier": "models",
    "KANRegressor": "models",
    "LinearRegression": "models",
    "LinearSVC": "models",
    "LogisticRegression": "models",
    "QuantileRegressor": "models",
    "ReLURegression": "models",
    "StandardScaler": "scaler",
    "compare": "comparison",
    "load": "loading",
    "tune": "tuning",
}

__all__ = [
    "Budget",
    "BudgetError",
    "Certificate",
    "ColumnTypesError",
    "DamagedError",
    "DataError",
    "DelimiterError",
    "DifferentColumnsError",
    "DuplicateColumnsError",
    "ElsewhereError",
    "ExhaustedError",
    "FeatureCountError",
    "FileError",
    "ImpossibleSchemaError",
    "InternalError",
    "MissingColumnsError",
    "Ledger",
    "ModelError",
    "NoFeaturesError",
    "NoFilesError",
    "NoHeaderError",
    "NoRandomnessError",
    "NoTargetError",
    "NotParquetError",
    "NoiseError",
    "NoiseParameterError",
    "PackageError",
    "ParameterError",
    "Plan",
    "QuietlyError",
    "RecordBatchError",
    "RefitError",
    "RepeatedFilesError",
    "Schema",
    "SchemaError",
    "SchemaSyntaxError",
    "SpentError",
    "StoppedError",
    "TargetError",
    "TooLargeError",
    "TooManyError",
    "UncoveredStepError",
    "UnfinishedSchemaError",
    "UnknownColumnsError",
    "UnreachableError",
    "UnreadableError",
    "UnsaidError",
    "UnsupportedError",
    "__version__",
    *_LATER,
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    if name == "spark":
        from importlib import import_module

        return import_module(".spark", __name__)
    raise AttributeError(f"module 'quietly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "spark"])
