"""The weights of a fitted model with the names of their features, and as one equation in natural units."""

from typing import Any

import numpy as np

from ._quietly import Model
from .errors import ParameterError


class _Coefficients:
    """What estimators with weights say of them."""

    _model: Model
    coef_: np.ndarray
    intercept_: Any

    @property
    def feature_names_out_(self) -> np.ndarray:
        """The names of the features that ``coef_`` belongs to: ``age``, ``sex=M``; of an expanded model ``feature 1`` and so on."""
        if not hasattr(self, "_model") or self._model.is_network:
            # scikit-learn's manner for what is not there before `fit`, and never is for a network.
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'feature_names_out_'")
        return np.asarray(self._features(), dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The same, as scikit-learn asks for it.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn's sake: the names are the model's own.
        """
        self._fitted_weights()
        return self.feature_names_out_

    def coef_table(self) -> list[dict[str, Any]]:
        """The weighted sum as one equation in the units of the table, the intercept first.

        One dict for the intercept and for every feature, with ``feature`` and ``coef``; of a model with more than two classes one for
        each class, with ``class``. A number counts as its range's end beyond that range. A category's coefficient is added in rows that have its
        value, and for the first value of a column nothing is added. Rows farther out than the model's radius are clipped first, where
        it clips rows. ``pandas.DataFrame(model.coef_table())`` makes a table of it.
        """
        self._fitted_weights()
        natural = self._model.natural()
        if natural is None:
            raise ParameterError(f"{type(self).__name__} made features of several columns, and they have no natural units: see coef_")
        intercepts, weights = natural[0], np.asarray(natural[1]).reshape(len(natural[0]), -1)
        rows: list[dict[str, Any]] = []
        for k, (intercept, row) in enumerate(zip(intercepts, weights)):
            label = {"class": getattr(self, "classes_")[k]} if len(intercepts) > 1 else {}
            rows.append({**label, "feature": "intercept", "coef": intercept})
            rows.extend({**label, "feature": name, "coef": float(coef)} for name, coef in zip(self._features(), row))
        return rows

    def _fitted_weights(self) -> None:
        fitted: Any = self
        if fitted._fitted().is_network:
            raise ParameterError(f"{type(self).__name__} has no coefficients: plot() draws what each column does")

    def _features(self) -> list[str]:
        width = np.atleast_2d(self.coef_).shape[1]
        names = self._model.features
        return names if len(names) == width else [f"feature {k + 1}" for k in range(width)]
