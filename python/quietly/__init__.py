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
    BudgetExceededError,
    ColumnTypesError,
    DamagedError,
    DataError,
    DelimiterError,
    DifferentColumnsError,
    DuplicateColumnsError,
    FeatureCountError,
    FileError,
    FitInterruptedError,
    ImpossibleSchemaError,
    InternalError,
    MissingColumnsError,
    ModelError,
    NoFeaturesError,
    NoFilesError,
    NoHeaderError,
    NoRandomnessError,
    NoTargetError,
    NoiseError,
    NoiseParameterError,
    NotParquetError,
    PackageError,
    ParameterError,
    QuietlyError,
    RandomnessExhaustedError,
    RecordBatchError,
    RefitError,
    RemoteError,
    RepeatedFilesError,
    SchemaError,
    SchemaSyntaxError,
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
from .errors import RENAMED as _RENAMED_ERRORS
from .ledger import Ledger

if TYPE_CHECKING:
    from . import spark as spark
    from .comparison import Comparison, compare
    from .loading import load
    from .models import (
        AutoClassifier,
        AutoRegressor,
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
    "AutoClassifier": "models",
    "AutoRegressor": "models",
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
    "AutoClassifier",
    "AutoRegressor",
    "Budget",
    "BudgetError",
    "BudgetExceededError",
    "Certificate",
    "ColumnTypesError",
    "DamagedError",
    "DataError",
    "DelimiterError",
    "DifferentColumnsError",
    "DuplicateColumnsError",
    "FeatureCountError",
    "FileError",
    "FitInterruptedError",
    "ImpossibleSchemaError",
    "InternalError",
    "Ledger",
    "MissingColumnsError",
    "ModelError",
    "NoFeaturesError",
    "NoFilesError",
    "NoHeaderError",
    "NoRandomnessError",
    "NoTargetError",
    "NoiseError",
    "NoiseParameterError",
    "NotParquetError",
    "PackageError",
    "ParameterError",
    "Plan",
    "QuietlyError",
    "RandomnessExhaustedError",
    "RecordBatchError",
    "RefitError",
    "RemoteError",
    "RepeatedFilesError",
    "Schema",
    "SchemaError",
    "SchemaSyntaxError",
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
    if name in _RENAMED_ERRORS:
        raise AttributeError(f"quietly has no {name}: it is called {_RENAMED_ERRORS[name]}", name=name)
    raise AttributeError(f"module 'quietly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "spark"])
