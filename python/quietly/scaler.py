"""Private means and standard deviations, for whatever comes next in a pipeline."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from . import ledger, pipelines, tables
from ._quietly import Certificate, Scaler, Schema, Table
from .errors import DataError, ParameterError, without_cells
from .estimators import _DEFAULT, _NAMES, _ROWS, NotFittedError, _seed, check_kind
from .parameters import described


@described
class StandardScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Numbers less their mean and over their standard deviation, both found privately in one release.

    A number beyond the range that the schema gives its column counts as the end of that range, in ``fit`` and in ``transform``. What comes out
    therefore has a range, too (``schema_``), which follows from the schema and from what was released. A quietly estimator without a
    schema that is handed the very array that ``transform`` gave, as in a ``Pipeline``, takes that range for its own.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        with_mean: bool = True,
        with_std: bool = True,
        public_steps: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.with_mean = with_mean
        self.with_std = with_std
        self.public_steps = public_steps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Asks the table for the means and standard deviations of its columns. Every fit spends."""
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise ParameterError("schema must be a quietly.Schema, or None; quietly.Schema.read(path) reads one from a file")
        if tables.is_path(X):
            raise DataError("a scaler takes a table in memory; models take files, and need no scaling")
        names, named, table = self._table(X)
        public = [] if self.schema is not None else [_DEFAULT, *([_NAMES] if named else [])]
        columns: dict[str, Any] = {name: (-1.0, 1.0) for name in names}
        schema = self.schema if self.schema is not None else Schema(columns)
        rows = self.rows if self.rows is not None else schema.rows
        if rows is None:
            if not table.rows:
                raise DataError("0 sample(s) (an empty table) while a minimum of 1 is required.")
            rows, public = table.rows, [*public, _ROWS]
        wishes = {**self.get_params(deep=False), "rows": rows, "random_state": _seed(self.random_state)}
        account, wishes["not_covered"] = ledger.of(self, schema), pipelines.not_covered(self)
        if account is not None and self.delta is None:
            wishes["delta"] = account.usual_delta(rows)
        self._adopt(tables.without_names(self.schema, lambda: Scaler.fit(table, schema, wishes, public, account)))
        self._columns = names
        self.n_features_in_ = len(names)
        if named:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.schema_ = Schema(dict(zip(names, self._scaler.ranges)), rows=rows).charged_like(schema)
        return self

    @without_cells
    def _table(self, X: Any) -> tuple[list[str], bool, Table]:
        """The names of the columns, whether X has them, and the table."""
        names, known = tables.column_names(X), self.schema.columns if self.schema is not None else []
        named = names is not None
        if names is None:
            X = tables.array_of(X)
            width = X.shape[1] if X.ndim == 2 else 0
            names = known if len(known) == width and "*" not in known else [f"x{k}" for k in range(width)]
        if self.schema is not None and "*" not in known and (unknown := sum(name not in known for name in names)):
            what = "1 column of X is" if unknown == 1 else f"{unknown} columns of X are"
            raise ParameterError(f"{what} not in the schema: add what is missing there, or leave the columns out of X")
        for place, (name, kind) in enumerate(tables.kinds(X, names).items()):
            check_kind("range", kind, tables.called(name, known, place))
        return names, named, tables.table(tables.parts_of(X, names, known or None))

    def _adopt(self, scaler: Scaler) -> None:
        self._scaler = scaler
        self.certificate_: Certificate = scaler.certificate
        self.mean_ = np.asarray(scaler.means)
        self.scale_ = np.asarray(scaler.deviations)
        self.var_ = self.scale_**2
        self.noise_ = np.asarray(scaler.noise)

    def transform(self, X: Any) -> np.ndarray:
        """Every number less its column's mean and over its standard deviation."""
        if not hasattr(self, "_scaler"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call 'fit' first.")
        table = tables.like_the_fitted(X, self._columns, type(self).__name__)
        numbers = np.frombuffer(self._scaler.transform(table, self.n_jobs), dtype=np.float64)
        scaled = numbers.reshape(-1, self.n_features_in_)
        tables.describe(scaled, self._scaler.ranges, self.schema_)
        return scaled

    def __sklearn_clone__(self) -> Self:
        cloned: Self = super().__sklearn_clone__()
        if hasattr(self, "_ledger"):
            cloned._ledger = self._ledger
        return cloned

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        # Where a worker process fits, it charges the ledger that is open here.
        if (brought := ledger.travelling()) is not None:
            state["_ledger"] = brought
        scaler = state.pop("_scaler", None)
        state.pop("certificate_", None)
        if scaler is not None:
            state["_scaler_file"] = scaler.to_json()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        text = state.pop("_scaler_file", None)
        super().__setstate__(state)
        if text is not None:
            self._adopt(Scaler.of_json(text))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # No cell decides whether a fit succeeds: what is no number is missing, as in a file.
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags
