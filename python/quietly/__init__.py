"""Differentially private learning on sensitive tables: budget in, model out, certificate attached.

>>> import quietly
>>> schema = quietly.Schema(age=(0, 100), sex=["F", "M"], income=["low", "high"], rows=30_000)
>>> model = quietly.LogisticRegression(epsilon=1.0, schema=schema)
"""

from typing import TYPE_CHECKING, Any

from ._quietly import Certificate, Plan, Schema, __version__
from .errors import (
    BudgetError,
    DataError,
    FileError,
    ModelError,
    NoiseError,
    PackageError,
    ParameterError,
    QuietlyError,
    SchemaError,
    StoppedError,
    TooLargeError,
)

if TYPE_CHECKING:
    from .comparison import Comparison, compare
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

_COMPARISON = ["Comparison", "compare"]

__all__ = [
    "BudgetError",
    "Certificate",
    "DataError",
    "FileError",
    "ModelError",
    "NoiseError",
    "PackageError",
    "ParameterError",
    "Plan",
    "QuietlyError",
    "Schema",
    "SchemaError",
    "StoppedError",
    "TooLargeError",
    "__version__",
    *_COMPARISON,
    *_ESTIMATORS,
]


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        from . import models

        return getattr(models, name)
    if name in _COMPARISON:
        from . import comparison

        return getattr(comparison, name)
    raise AttributeError(f"module 'quietly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
