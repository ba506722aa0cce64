"""Differentially private learning on sensitive tables: budget in, model out, certificate attached.

>>> import quietly
>>> schema = quietly.Schema(age=(0, 100), sex=["F", "M"], income=["low", "high"], rows=30_000)
>>> model = quietly.LogisticRegression(epsilon=1.0, schema=schema)
"""

from typing import TYPE_CHECKING, Any

from ._quietly import Certificate, Plan, Schema, __version__
from .errors import (
    BatchesError,
    BudgetError,
    ColumnTypesError,
    DamagedError,
    DataError,
    DelimiterError,
    DifferentColumnsError,
    DuplicateColumnsError,
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
    NoiseError,
    NoiseParameterError,
    ParameterError,
    QuietlyError,
    SchemaError,
    SchemaSyntaxError,
    StoppedError,
    TargetError,
    TooLargeError,
    TooManyError,
    UnfinishedSchemaError,
    UnknownColumnsError,
    UnreachableError,
    UnreadableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from .models import (
        KANClassifier,
        KANRegressor,
        LinearRegression,
        LinearSVC,
        LogisticRegression,
        QuantileRegressor,
        ReLURegression,
        load,
    )

# These need scikit-learn, which takes a while to import: they come when they are asked for.
_ESTIMATORS = [
    "KANClassifier",
    "KANRegressor",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "QuantileRegressor",
    "ReLURegression",
    "load",
]

__all__ = [
    "BatchesError",
    "BudgetError",
    "Certificate",
    "ColumnTypesError",
    "DamagedError",
    "DataError",
    "DelimiterError",
    "DifferentColumnsError",
    "DuplicateColumnsError",
    "ExhaustedError",
    "FeatureCountError",
    "FileError",
    "ImpossibleSchemaError",
    "InternalError",
    "MissingColumnsError",
    "ModelError",
    "NoFeaturesError",
    "NoFilesError",
    "NoHeaderError",
    "NoRandomnessError",
    "NoTargetError",
    "NoiseError",
    "NoiseParameterError",
    "ParameterError",
    "Plan",
    "QuietlyError",
    "Schema",
    "SchemaError",
    "SchemaSyntaxError",
    "StoppedError",
    "TargetError",
    "TooLargeError",
    "TooManyError",
    "UnfinishedSchemaError",
    "UnknownColumnsError",
    "UnreachableError",
    "UnreadableError",
    "UnsupportedError",
    "__version__",
    *_ESTIMATORS,
]


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        from . import models

        return getattr(models, name)
    raise AttributeError(f"module 'quietly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
