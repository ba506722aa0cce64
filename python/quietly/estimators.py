"""What the estimators share: scikit-learn's manners over the same core as the command line, and no arithmetic."""

import os
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import exceptions
from sklearn.base import BaseEstimator

from . import files, ledger, pipelines, progress, tables
from ._quietly import Certificate, Model, Plan, Schema, Table
from .coefficients import _Coefficients
from .errors import ColumnTypesError, DataError, MissingColumnsError, ParameterError, QuietlyError, without_cells
from .parameters import renamed
from .recorded import check_said, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DEFAULT = "no schema was given: every feature was taken to lie within [-1, 1], whatever the table holds, and cut to that"
_NAMES = "no schema was given: the names of the columns of this table were treated as public"
_SCALED = "the ranges of features are those that a private scaler before this model gave"
_ROWS = "no number of rows was declared: the number of rows of this table, as it was given, was treated as public"
_NO_SCHEMA = (
    "no schema was given: every feature is taken to lie within [-1, 1], and cut to that. If yours do not, say what is public about them: "
    "schema=quietly.Schema(age=(0, 100), ...)"
)


class NotFittedError(QuietlyError, exceptions.NotFittedError):
    """The model has not been fitted yet. scikit-learn's own, too."""


class _Private(_Coefficients, BaseEstimator):
    """What all estimators share. ``__init__`` stores; everything else happens in ``fit``."""

    _family: str
    # Which model files it opens: their link, and whether it is a network.
    _links: tuple[tuple[str, bool], ...]
    _regresses: bool = False

    def __new__(cls, *args: Any, **given: Any) -> Self:
        if (message := renamed(cls, given)) is not None:
            raise TypeError(message)
        made: Self = super().__new__(cls)
        return made

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by name, as scikit-learn does."""
        if (message := renamed(type(self), params)) is not None:
            raise ParameterError(message)
        super().set_params(**params)
        return self

    # Not for type checkers: to them every name would be there.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Called for names that are not there: those of earlier versions have a sentence that names the new one."""
            message = renamed(type(self), [name])
            if name == "report":
                message = f"{type(self).__name__} has no method 'report': it is called 'label'"
            raise AttributeError(message or f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    # -- fitting ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Plans, fits through the Releaser, and writes the certificate of the result.

        Every fit spends: fit the same people twice and the epsilons add up.

        Parameters
        ----------
        X : table, path, or list of paths
            numpy, pandas, polars or pyarrow; or files (CSV, Parquet, Arrow, libsvm). With ``method="one-pass"`` files may be larger than memory.
        y : column or str
            What is predicted, or the name of a column of X. With files it is a name.

        Returns
        -------
        self
        """
        return self._fit(X, y, [])

    def _fit(self, X: Any, y: Any, chosen: list[str]) -> Self:
        table, schema, wishes, public, names, named = self._prepare(X, y)
        account, wishes["not_covered"] = ledger.of(self, schema), pipelines.not_covered(self)
        wishes["parameters"] = written(self)
        if account is not None and self.delta is None:
            wishes["delta"] = account.usual_delta(wishes["rows"])
        there = None
        if isinstance(X, tables.Elsewhere):
            there = (X.ask, X.count)
            if wishes.get("method", "auto") == "auto" and Plan.of(table.columns, schema, wishes).method == "one-pass":
                # Rows that are elsewhere have no places, which one pass needs.
                wishes["method"] = "full-batch"
        with progress.shown(self.verbose) as wishes["tell"]:
            model = tables.without_names(self.schema, lambda: Model.fit(table, schema, wishes, [*public, *chosen], account, there))
        # A warning may be an error, and must not cost the model.
        self._adopt(model, names, named)
        self._warn(model)
        return self

    def _warn(self, model: Model) -> None:
        """Warns the caller of ``fit`` or ``tune`` of what the plan and the count of rows say."""
        for warning in [*model.plan.warnings, model.certificate.rows_warning]:
            if warning is not None:
                warnings.warn(warning, UserWarning, stacklevel=4)

    @without_cells
    def _table(self, X: Any, y: Any) -> Table:
        """The table alone: nothing is asked of its labels."""
        return self._open(X, y)[0] if tables.is_path(X) else tables.table(self._parts(X, y)[1])

    @without_cells
    def _prepare(self, X: Any, y: Any) -> tuple[Table, Schema, dict[str, Any], list[str], list[str] | None, bool]:
        """The table, what is public about it, what is asked for, what was taken to be public, and the features' names."""
        check_said(self)
        if y is None:
            raise DataError("requires y to be passed, but the target y is None: give a column, or the name of one of X")
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise ParameterError("schema must be a quietly.Schema, or None; quietly.Schema.read(path) reads one from a file")
        if self.target is not None and not isinstance(self.target, str):
            raise ParameterError(f"target must be the name of a column, or None, but is of type {type(self.target).__name__}")
        if tables.is_path(X) or isinstance(X, tables.Elsewhere):
            table, target = self._open(X, y)
            # Columns that the schema does not describe are not the model's, and their names stay in the file.
            names: list[str] | None = None
            public: list[str] = []
            rows = None
            schema = self.schema
            if schema is None:
                what = "a file" if tables.is_path(X) else "a table that is elsewhere"
                raise DataError(f"{what} needs a schema: give schema=quietly.Schema(...) or quietly.Schema.read(path)")
        else:
            within = isinstance(y, str)
            names, parts, target, y = self._parts(X, y)
            schema, public = self._public(names, target, y, tables.described(X))
            self._check_features(X, [*names, target] if within else names)
            if self.schema is None and tables.column_names(X) is not None:
                public = [*public, _NAMES]
            table = tables.table(parts)
            rows = table.rows
            if self.schema is not None and "*" not in self.schema.columns:
                names = [name for name in names if name in self.schema.columns]
        declared = self.rows if self.rows is not None else schema.rows
        if self.rows is not None and (isinstance(self.rows, bool) or not isinstance(self.rows, (int, np.integer)) or self.rows < 1):
            raise ParameterError("rows must be a whole number, at least 1: about how many there are")
        if declared is None:
            # Where the number of rows is declared, no row decides whether there is a model: an empty table gives one of noise.
            if rows == 0:
                raise DataError("0 sample(s) (an empty table) while a minimum of 1 is required.")
            if rows is None:
                raise DataError("the number of rows is not public: give rows=, or rows in the schema")
            declared, public = rows, [*public, _ROWS]
        wishes = {**self.get_params(deep=False), "family": self._family, "target": target, "rows": declared}
        wishes["random_state"] = _seed(self.random_state)
        return table, schema, wishes, public, names, tables.column_names(X) is not None

    def plan(self, X: Any = None, y: Any = None, *, rows: int | None = None, target: str | None = None) -> Plan:
        """The plan of a fit, from what is public: the schema, and no row. Nothing is spent.

        Parameters
        ----------
        X, y : ignored
            There for scikit-learn's sake: they are not looked at.
        rows : int or None, default None
            About how many rows there are. None takes the estimator's or the schema's number.
        target : str or None, default None
            The column to predict. None takes the estimator's.
        """
        if self.schema is None:
            raise ParameterError("a plan without data needs a schema")
        target = target or self.target
        if target is None:
            raise ParameterError("target must be given: the name of the column to predict, as in plan(target=\"income\")")
        columns = [name for name in self.schema.columns if name != "*"]
        rows = rows or self.rows or self.schema.rows
        if rows is None:
            raise ParameterError("rows must be given, or be in the schema")
        check_said(self)
        wishes = {**self.get_params(deep=False), "family": self._family, "target": target, "rows": rows}
        return Plan.of(columns, self.schema, wishes)

    def _open(self, X: Any, y: Any) -> tuple[Table, str]:
        if not isinstance(y, str):
            raise DataError("with files, y is the name of the column to predict")
        if isinstance(X, tables.Elsewhere):
            return X.empty, y
        if self.schema is None:
            return Table.open(tables.paths(X)), y
        names = [name for name in self.schema.columns if name != "*"]
        return Table.open(tables.paths(X), self.schema.features, names, self.schema.header), y

    def _parts(self, X: Any, y: Any) -> tuple[list[str], list[tables.Part], str, Any]:
        names = tables.column_names(X)
        if names is None:
            X = tables.array_of(X)
            names = self._unnamed(X, None if isinstance(y, str) else _name(y))
        known = None if self.schema is None or "*" in self.schema.columns else self.schema.columns
        if isinstance(y, str):
            if y not in names:
                raise MissingColumnsError.coded("D10", f"X has no column {y!r}")
            self._check_there(names)
            parts = tables.parts_of(X, names, known)
            return [n for n in names if n != y], parts, y, _column(X, y)
        target = self._target_name(names, _name(y))
        y = _one_column(y)
        if target in names:
            raise DataError(f"{self._shown(target)} has the name of a feature: say target=, under another name, or leave the column out of X")
        self._check_columns(names, target)
        return names, tables.parts_of(X, names, known) + tables.column_of(y, target, "the target"), target, y

    def _target_name(self, names: list[str], own: str | None) -> str:
        """What y is called: as the parameter says, as y says if the schema knows it, as the one column that X lacks, or "target".

        Without a schema, or with "*" in it, all names of the table are taken to be public, and so is that of y.
        """
        known = self.schema is None or "*" in self.schema.columns or own in self.schema.columns
        said = self.target or (own if known else None) or self._the_missing_one(names)
        return said or ("target" if "target" not in names else "the target")

    def _shown(self, target: str) -> str:
        """The target in a message: with its name if the schema or a parameter says it."""
        public = target == self.target or (self.schema is not None and target in self.schema.columns)
        return f"the target {target!r}" if public else "the target"

    def _unnamed(self, X: Any, target: str | None) -> list[str]:
        """Names for columns without any: those of the schema, or x0, x1, …"""
        width = X.shape[1] if X.ndim == 2 else 0
        target = self.target or target
        if self.schema is not None and "*" not in self.schema.columns:
            names = [name for name in self.schema.columns if name != target]
            if len(names) == width + 1 and target is None:
                raise ParameterError("target must name the column to predict, as X has no names of columns")
            if len(names) == width:
                return names
            own = [f"x{k}" for k in range(width)]
            if X.ndim == 2 and not set(own) <= set(names):
                raise DataError(
                    f"X has {width} columns without names, but the schema has {len(names)} beside the target: "
                    "give a table with names, or as many columns as the schema, in its order"
                )
        return [f"x{k}" for k in range(width)]

    def _missing(self, names: list[str]) -> list[str]:
        """The columns of the schema that X lacks."""
        return [] if self.schema is None else [name for name in self.schema.columns if name != "*" and name not in names]

    def _the_missing_one(self, names: list[str]) -> str | None:
        missing = self._missing(names)
        return missing[0] if len(missing) == 1 else None

    def _check_columns(self, names: list[str], target: str) -> None:
        """Names are public: what the schema knows and the table lacks is refused, before anything is spent."""
        missing = self._missing(names)
        if not missing or self.schema is None:
            return
        declared = self._declared() is not None or "*" in self.schema.columns
        if target not in missing and not declared:
            what = f"no column {target!r}, the target" if target == self.target else "no column of the name of y, the target"
            raise ParameterError(
                f"the schema has {what}, but has others that X lacks, {', '.join(map(repr, missing))}: "
                "say which of them is y, as in target=" + repr(missing[0]) + ", or add it to the schema"
            )
        self._check_there(names, target)

    def _check_there(self, names: list[str], target: str | None = None) -> None:
        """Refuses a table without some column of the schema, as the command line does; ``target`` is beside the table."""
        missing = [name for name in self._missing(names) if name != target]
        if not missing or self.schema is None:
            return
        others = sum(name not in self.schema.columns for name in names) if "*" not in self.schema.columns else 0
        also = f" {others} column{'s' * (others > 1)} of X {'are' if others > 1 else 'is'} not in the schema." if others else ""
        raise MissingColumnsError.coded(
            "D10",
            f"X has no column {', '.join(map(repr, missing))}, which the schema describes.{also} Rename a column of X, or leave the rule out: "
            "schema.for_columns([...]) keeps the columns that it is given",
        )

    def _public(
        self, names: list[str], target: str, y: Any, scaled: tables.Described | None
    ) -> tuple[Schema, list[str]]:
        """The schema, or the ranges that a scaler before gave, or the default that sees no data; and what was taken to be public."""
        if self.schema is not None:
            there = self.schema
            if target not in there.columns and "*" not in there.columns:
                rule, public = self._target_rule(y)
                check_kind("range" if self._regresses else "values", _kind(y), "the target")
                return there.with_column(target, rule), public
            if target in there.columns and self._declared() is not None:
                raise ParameterError(f"the schema describes the target {target!r}, and {self._declared()} does so, too: leave one of them out")
            check_kind(there.holds(target) or there.holds("*"), _kind(y), "the target")
            return there, []
        rule, public = self._target_rule(y)
        check_kind("range" if self._regresses else "values", _kind(y), "the target")
        if scaled is None:
            if any(scaler.schema_.charges_units for scaler in pipelines.scalers_before()):
                raise ParameterError(
                    "the schema of the scaler before this model names a ledger or rows_per_unit, and it got lost on the way: give the model "
                    "the very array that the scaler returns, or a schema of its own. This fit spent nothing"
                )
            warnings.warn(_NO_SCHEMA, UserWarning, stacklevel=6)
            columns: dict[str, Any] = {name: (-1.0, 1.0) for name in names}
            return Schema(columns | {target: rule}), [_DEFAULT, *public]
        columns = dict(zip(names, scaled.ranges)) | {target: rule}
        return Schema(columns).charged_like(scaled.schema), [_SCALED, *public]

    def _target_rule(self, y: Any) -> tuple[Any, list[str]]:
        raise NotImplementedError

    def _declared(self) -> str | None:
        """The parameter that describes the target, if it was given."""
        return next((name for name in ("classes", "target_range") if getattr(self, name, None) is not None), None)

    def _check_features(self, X: Any, names: list[str]) -> None:
        schema, kinds = self.schema, tables.kinds(X, names)
        known = [] if schema is None else schema.columns
        for place, name in enumerate(kinds):
            if name in names:
                holds = "range" if schema is None else schema.holds(name) or schema.holds("*")
                check_kind(holds, kinds[name], tables.called(name, known, place))

    # -- after fitting ---------------------------------------------------------------------------------------------------

    def _adopt(self, model: Model, names: list[str] | None, named: bool) -> None:
        self._model = model
        self.certificate_: Certificate = model.certificate
        self.plan_: Plan = model.plan
        names = names if names is not None else model.columns
        self._columns = names
        self.n_features_in_ = len(names)
        if named:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if not model.is_network:
            self._weights(model)

    def _weights(self, model: Model) -> None:
        self.coef_ = np.asarray(model.weights)
        self.intercept_: Any = model.intercepts[0]
        self.scaled_coef_ = np.asarray(model.scaled()[1])

    def _fitted(self) -> Model:
        if not hasattr(self, "_model"):
            message = f"This {type(self).__name__} instance is not fitted yet: call 'fit' first."
            raise NotFittedError(message)
        return self._model

    @without_cells
    def _read(self, X: Any) -> Table:
        if tables.is_path(X):
            return Table.open(tables.paths(X), names=self._fitted().columns)
        return tables.like_the_fitted(X, self._columns, type(self).__name__)

    def _numbers(self, numbers: bytearray) -> np.ndarray:
        return np.frombuffer(numbers, dtype=np.float64)

    def predict(self, X: Any) -> np.ndarray:
        """A prediction for every row of a table or of files. It costs nothing.

        Parameters
        ----------
        X : table, path, or list of paths
            With the columns of the fit, in any order if they have names; more columns do no harm.
        """
        return self._numbers(self._fitted().predict(self._read(X), self.n_jobs))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the model file: weights, encoding and certificate, as the command line does. ``quietly.load`` reads it.

        A file that is there is replaced only with ``overwrite``: it may be a model that was paid for.
        """
        model = self._fitted().to_bytes()
        if not overwrite:
            files.expect(path, lambda start: start == model)
        files.write(path, model)

    def label(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the privacy label: one HTML page for people who did not make the model, as ``quietly label`` does.

        A file that is there is replaced only if it is such a page, or with ``overwrite``.
        """
        if not overwrite:
            files.expect(path, lambda start: b"<title>Privacy label" in start[:4096])
        files.write(path, self._fitted().label().encode())

    def plot(self, *, public: tuple[Any, Any] | None = None, runs: int = 20) -> "Figure":
        """What was learnt, as a matplotlib figure: the weights, or what each column does to the answer of a network, or adds to that of an
        additive regression.

        Parameters
        ----------
        public : (X, y) or None, default None
            A public or synthetic table like the private one. The same plan is fitted to it ``runs`` times, and the standard
            deviation of every weight is drawn as its error bar. Without it there are no bars: how far noise moves a weight
            depends on the rows, and is not known. Networks and additive regressions have no bars.
        runs : int, default 20
            How many fits the bars are made of, at least 2.
        """
        from . import plots

        self._fitted()
        if public is not None and not (isinstance(public, tuple) and len(public) == 2):
            raise ParameterError("public must be a pair of table and target, as in public=(X, y)")
        if public is None or self._model.is_network or self._model.has_bends:
            return plots.model(self, None, plots.NO_BARS)
        from .comparison import spread

        return plots.model(self, spread(self, *public, runs=runs), f"bars: standard deviation of {runs} fits of a public table")

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
        model = state.pop("_model", None)
        for name in ("certificate_", "plan_"):
            state.pop(name, None)
        if model is not None:
            state["_model_file"] = model.to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        bytes_ = state.pop("_model_file", None)
        super().__setstate__(state)
        if bytes_ is not None:
            self._model = Model.of_bytes(bytes_)
            self.certificate_, self.plan_ = self._model.certificate, self._model.plan

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Missing numbers have a place of their own, and a cell must not decide whether a fit succeeds.
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def check_kind(holds: str | None, kind: str | None, what: str) -> None:
    """Types are public: a column whose type can hold nothing of what its rule describes is refused, before anything is spent."""
    if holds in ("texts", "numbers", "truths") and kind in ("numbers", "truths") and kind != holds:
        raise ColumnTypesError.coded(
            "D13",
            f"the schema lists {holds} for {what}, but it is a column of {kind}, in which none of them can be found: "
            "write the schema as the column is, or convert the column",
        )
    if holds == "range" and kind == "texts":
        raise ColumnTypesError.coded(
            "D13", f"{what} is a column of texts where numbers are wanted: convert it to numbers, or list its values in a schema"
        )
    if holds is not None and kind == "dates":
        raise ColumnTypesError.coded("D13", f"{what} holds dates or times: give a number instead, such as days since some day")


def _kind(y: Any) -> str | None:
    """What a column holds, if its type says so."""
    return tables.kind(getattr(y, "dtype", None) if hasattr(y, "dtype") else getattr(y, "type", None))


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise ParameterError("random_state must be None, for the operating system's randomness, or a whole number from 0")


def _one_column(y: Any) -> Any:
    if type(y).__module__.startswith("pandas") and getattr(y, "ndim", 0) == 1 and not hasattr(y, "iloc"):
        # Arrays and indices of pandas, as `.values` gives them.
        import pandas

        y = pandas.Series(y)
    y = y if hasattr(y, "to_numpy") else tables.cells(y)
    shape: tuple[int, ...] = y.shape if hasattr(y, "shape") else (len(y),)
    if len(shape) == 2 and shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        message = "A column-vector y was passed when a 1d array was expected."
        warnings.warn(message, DataConversionWarning, stacklevel=3)
        return _one_column(y.iloc[:, 0]) if hasattr(y, "iloc") else np.asarray(y).ravel()
    if len(shape) != 1:
        raise DataError("y should be a 1d array: one column")
    return y


def _column(X: Any, name: str) -> Any:
    # A stream is read once, and not to look for labels.
    if not hasattr(X, "__getitem__"):
        return None
    if name not in (tables.column_names(X) or []):
        raise MissingColumnsError.coded("D10", f"X has no column {name!r}")
    return X[name]


def _name(y: Any) -> str | None:
    name = getattr(y, "name", None)
    if name is None and getattr(y, "ndim", 1) == 2 and len(getattr(y, "columns", [])) == 1:
        name = y.columns[0]
    return name if isinstance(name, str) and name else None
