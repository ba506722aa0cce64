"""Choosing hyper-parameters without paying for every try."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from . import _quietly, ledger, pipelines, tables
from .errors import ParameterError
from .estimators import _Private, _seed
from .parameters import renamed
from .recorded import written

__all__ = ["tune"]

E = TypeVar("E", bound=_Private)
Rows = tuple[Any, Any]

# These are not for choosing: they say what is public, what is spent, and by whom.
_FIXED = {
    "epsilon", "delta", "schema", "rows", "target", "neighbours", "random_state", "n_jobs", "classes", "target_range", "verbose",
    "public_steps",
}  # fmt: skip

_CHOSEN = "hyper-parameters were chosen on rows that are public"
_OTHERS = "that the rows for validation are of people who are not in the table"


def tune(
    estimator: E,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    X: Any,
    y: Any,
    *,
    trials: float | None = None,
    share: float = 0.2,
    validation: Rows | None = None,
    validation_is_public: bool = False,
    public: Rows | None = None,
) -> E:
    """The best of the candidates in ``grid``, fitted, within the ``epsilon`` and ``delta`` of ``estimator`` in all.

    A random number of trials is made. Each draws a candidate, fits it, and scores it privately on rows that it has not seen. The best model
    is released, and nothing else. That costs less than two fits, however many candidates there are. How many trials were made is not
    told, and must not be: an observer of the clock is not covered.

    Parameters
    ----------
    estimator : estimator of quietly
        It is cloned. Its ``epsilon`` and ``delta`` are what may be spent in all.
    grid : dict of lists, or list of such dicts
        Candidates, as for ``GridSearchCV``: every combination of the listed values.
    X, y : table and column
        As for ``fit``.
    trials : float or None, default None
        How many trials there are in the mean, from 2 to 1000. None takes four for each candidate, and at least 10. Few may be made by
        chance: with a mean of 10 every fourth run makes a single one. More cost time, and hardly any epsilon.
    share : float, default 0.2
        The share of rows that is drawn at random and kept apart for scores, where ``validation`` is not given.
    validation : (X, y) or None, default None
        Rows for scores, of people who are not in the table.
    validation_is_public : bool, default False
        ``validation`` is public: scores have no noise.
    public : (X, y) or None, default None
        Choose on these public rows alone, for free, and fit the table once, with all of epsilon.

    Returns
    -------
    estimator
        A new one, fitted, with ``best_params_`` and ``best_score_`` (R2, or the share of rows that are right, with noise unless rows are
        public, and at most 1). The certificate says how it was chosen.
    """
    candidates = _candidates(estimator, grid)
    for what, rows in (("public", public), ("validation", validation)):
        if rows is not None and not (isinstance(rows, tuple) and len(rows) == 2):
            raise ParameterError(f"{what} must be a pair of table and target, as in {what}=(X, y)")
    if public is not None:
        if validation is not None:
            raise ParameterError("give public=(X, y) or validation=(X, y), not both")
        best, score = _on_public(estimator, candidates, public)
        chosen: E = clone(estimator).set_params(**candidates[best])
        chosen._fit(X, y, [_CHOSEN])
    else:
        if trials is None:
            trials = float(min(max(10, 4 * len(candidates)), 1000))
        table, schema, wishes, taken, names, named = estimator._prepare(X, y)
        held = None
        if validation is not None:
            _expect_others(X, validation[0])
            held = estimator._table(*validation)
            taken = taken if validation_is_public else [*taken, _OTHERS]
        elif validation_is_public:
            raise ParameterError("validation_is_public goes with validation=(X, y)")
        trying = {"trials": float(trials), "share": float(share), "public": bool(validation_is_public)}
        tried = [clone(estimator).set_params(**candidate) for candidate in candidates]
        asked = [{**wishes, **candidate, "parameters": written(one)} for candidate, one in zip(candidates, tried)]
        account, asked[0]["not_covered"] = ledger.of(estimator, schema), pipelines.not_covered(estimator)
        if account is not None and estimator.delta is None:
            delta = account.usual_delta(wishes["rows"])
            asked = [{**one, "delta": delta} for one in asked]
        best, score, model = _quietly.tune(table, held, schema, asked, trying, taken, account)
        chosen = tried[best]
        chosen._adopt(model, names, named)
        chosen._warn(model)
    chosen.best_params_ = candidates[best]
    chosen.best_score_ = score
    return chosen


def _expect_others(X: Any, validation: Any) -> None:
    """Refuses rows for validation that are rows of the table: the price is that of two tables without a common row."""
    files = [{os.path.realpath(path) for path in tables.paths(rows)} if tables.is_path(rows) else set() for rows in (X, validation)]
    arrays = isinstance(X, np.ndarray) and isinstance(validation, np.ndarray)
    if X is validation or files[0] & files[1] or (arrays and np.may_share_memory(X, validation) and _overlap(X, validation)):
        raise ParameterError(
            "validation has rows of the table itself: give rows of other people, or leave validation out, and a share of the table is kept "
            "apart. Nothing was spent"
        )


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        # Strides for which this takes long are those of no ordinary slices.
        return bool(np.shares_memory(a, b, max_work=100_000))  # type: ignore[arg-type]
    except Exception:
        return False


def _candidates(estimator: Any, grid: Any) -> list[dict[str, Any]]:
    if not isinstance(estimator, _Private):
        raise ParameterError(
            f"estimator must be one of quietly's models, but is a {type(estimator).__name__}: fit a scaler first, and tune what follows it"
        )
    try:
        candidates = [dict(candidate) for candidate in ParameterGrid(grid)]
    except (TypeError, ValueError):
        raise ParameterError("grid must be a dict of lists, such as {'ridge': [0.01, 0.1]}, or a list of such dicts") from None
    known = set(estimator.get_params(deep=False))
    for name in sorted({name for candidate in candidates for name in candidate}):
        if name not in known:
            raise ParameterError(renamed(type(estimator), [name]) or f"{type(estimator).__name__} has no parameter {name!r}")
        if name in _FIXED:
            raise ParameterError(f"{name} is not for choosing: it says what is public, or what is spent. Set it in the estimator")
    return candidates


def _on_public(estimator: Any, candidates: list[dict[str, Any]], public: Rows) -> tuple[int, float]:
    """The place and the mean score of the candidate that is best on public rows, each with five draws of its noise."""
    X, y = public
    table, schema, wishes, _, names, named = estimator._prepare(X, y)
    first, second = table.halves(_seed(estimator.random_state))
    scores = []
    for candidate in candidates:
        asked = {**wishes, **candidate, "rows": max(1, table.rows // 2) if table.rows else wishes["rows"]}
        drawn = [
            _quietly.Model.fit(first, schema, {**asked, "random_state": None}, []).score(second, estimator.n_jobs)
            for _ in range(5)
        ]
        scores.append(float(np.mean(drawn)))
    best = int(np.argmax(scores))
    return best, scores[best]
