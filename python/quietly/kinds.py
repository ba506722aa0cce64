"""Regressions and classifiers: what they make of a target, and what they say of rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from . import tables
from ._quietly import Model, Table
from .errors import DataError, ParameterError, without_cells
from .estimators import _column, _Private

_CLASSES = "no classes were declared: the set of labels of this table was treated as public"
_TARGET = "no range of the target was declared: it was taken to lie within [-1, 1], whatever the table holds"


class _Scored:
    """scikit-learn's scores, of columns by name and of files, too."""

    @without_cells
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2, or the share of rows whose class is right. **Not private**: for public rows, or for readers who may see the rows.

        Parameters
        ----------
        X : table, path, or list of paths
            As for ``predict``.
        y : column or str
            What is right, or the name of a column of X. With files it is a name.
        sample_weight : column or None, default None
            How much each row counts; not with files.
        """
        if tables.is_path(X):
            if not isinstance(y, str) or sample_weight is not None:
                raise DataError("with files, y is the name of the column to predict, and there are no weights")
            model: Any = self
            fitted = model._fitted()
            table = Table.open(tables.paths(X), names=fitted.columns)
            scored: float = fitted.score(table, model.n_jobs)
            return scored
        if isinstance(y, str):
            y = _column(X, y)
        score: float = super().score(X, y, sample_weight)  # type: ignore[misc]
        return score


class _Regressor(_Scored, RegressorMixin, _Private):
    _regresses = True

    def _target_rule(self, y: Any) -> tuple[Any, list[str]]:
        if self.target_range is None:
            return (-1.0, 1.0), [_TARGET]
        try:
            low, high = self.target_range
            return (low, high), []
        except (TypeError, ValueError):
            pass
        raise ParameterError("target_range must be two numbers, such as (0, 100)")


class _Classifier(_Scored, ClassifierMixin, _Private):
    def _target_rule(self, y: Any) -> tuple[Any, list[str]]:
        if self.classes is not None:
            if isinstance(self.classes, str) or not isinstance(self.classes, Iterable):
                what = "one text" if isinstance(self.classes, str) else f"of type {type(self.classes).__name__}"
                raise ParameterError(f"classes must be a list of all labels, such as ['no', 'yes'], but is {what}")
            return list(self.classes), []
        if y is None:
            raise DataError("the labels of a stream are not known before it is read: give classes=, or a schema")
        found, array = _labels(y), _array(y)
        # Objects with gaps among them are not what the check expects; what is there is.
        # So are numbers without those that are missing: no cell decides.
        present = array[np.isfinite(array)] if array.dtype.kind == "f" else array
        if not _is_classes(found if array.dtype == object else present):
            raise DataError("Unknown label type: y does not hold labels of classes. Declare the labels: classes=[...], or in a schema")
        labels = found[np.isfinite(found)].tolist() if found.dtype.kind == "f" else found.tolist()
        if len(labels) > 1000:
            raise DataError("y has more than 1000 different labels: is it an id, or a number to regress on? Classes so many are declared, as classes=[...]")
        if len(labels) < 2:
            raise DataError("wanted at least two classes, got one class; declare all labels, such as classes=[-1, 1]")
        return labels, [_CLASSES]

    def _adopt(self, model: Model, names: list[str] | None, named: bool) -> None:
        self.classes_ = np.asarray(model.class_values())
        super()._adopt(model, names, named)

    def _weights(self, model: Model) -> None:
        self.intercept_ = np.asarray(model.intercepts)
        self.coef_ = np.asarray(model.weights).reshape(len(self.intercept_), -1)
        self.scaled_coef_ = np.asarray(model.scaled()[1]).reshape(self.coef_.shape)

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of every row of a table or of files. It costs nothing.

        Parameters
        ----------
        X : table, path, or list of paths
            With the columns of the fit, in any order if they have names; more columns do no harm.
        """
        places = super().predict(X)
        return self.classes_[places.astype(np.intp)]

    def decision_function(self, X: Any) -> np.ndarray:
        """For two classes a score, positive for the last; for more the logarithm of each one's probability."""
        scores = self._numbers(self._fitted().scores(self._read(X), self.n_jobs))
        return scores if len(self.classes_) == 2 else scores.reshape(-1, len(self.classes_))


class _Probable(_Classifier):
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class for every row: as many columns as ``classes_`` has entries, in that order."""
        said = self._fitted().probabilities(self._read(X), self.n_jobs)
        return self._numbers(said).reshape(-1, len(self.classes_))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of ``predict_proba``."""
        logarithms: np.ndarray = np.log(self.predict_proba(X))
        return logarithms


def _is_classes(labels: np.ndarray) -> bool:
    try:
        check_classification_targets(labels)
        return True
    except ValueError:
        return False


def _array(y: Any) -> np.ndarray:
    array: np.ndarray = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    return array


def _labels(y: Any) -> np.ndarray:
    array = _array(y)
    if array.dtype == object:
        there = [x for x in array.tolist() if isinstance(x, (str, bool, int, float)) and x == x]
        alike = len({type(label) for label in there}) == 1
        return np.unique(there if alike else [str(label) for label in there])
    labels = np.unique(array)
    present: np.ndarray = labels[labels == labels]
    return present
