"""Estimators from model files."""

import inspect
import json
import os
import warnings
from typing import Any

from . import models, recorded
from ._quietly import Model, Schema
from .errors import ModelError
from .estimators import _Private
from .recorded import LEFT_OUT, UNSAID

__all__ = ["load"]

# By the link of the model, and whether it is a network.
_KINDS: dict[tuple[str, bool], type[_Private]] = {
    link: kind
    for kind in vars(models).values()
    if isinstance(kind, type) and issubclass(kind, _Private)
    for link in vars(kind).get("_links", ())
}


def load(path: str | os.PathLike[str]) -> _Private:
    """The estimator in a model file, written by this package, the command line or Rust.

    Parameters
    ----------
    path : str or path
        The model file.

    Returns
    -------
    estimator
        A fitted one, with its certificate and plan, and with the parameters of the fit, but for ``random_state``, ``n_jobs`` and ``verbose``,
        which are not in the file. Files of the command line and of older versions do not hold all parameters: what they do not say must be
        set before another ``fit``, which refuses otherwise.
    """
    model = Model.read(os.fspath(path))
    automatic = models.AutoClassifier if model.link in ("logistic", "softmax") else models.AutoRegressor
    kind = _KINDS.get((model.link, model.is_network)) if model.plan.why is None else automatic
    if kind is None:
        raise ModelError(f"there is no estimator for {model.link} models; `quietly predict` reads this file")
    names = list(inspect.signature(kind).parameters)
    said = recorded.read(model.parameters) if model.parameters is not None else _derived(model)
    certificate = model.certificate
    if said.get("epsilon") != certificate.budget or said.get("neighbours") != certificate.neighbours or said.get("delta") not in (None, certificate.delta):
        raise ModelError.coded("Q04", "the parameters in the model file are not those that its certificate says were requested")
    estimator = kind(**{name: said.get(name, UNSAID) for name in names if name not in LEFT_OUT})
    estimator._adopt(model, None, True)
    return estimator


def _derived(model: Model) -> dict[str, Any]:
    """What a file without parameters says of them."""
    file = json.loads(model.to_bytes())
    plan, certificate = file["plan"], model.certificate
    said: dict[str, Any] = {
        "epsilon": certificate.budget,
        "delta": certificate.delta,
        "neighbours": certificate.neighbours,
        "rows": plan["rows"],
        "target": model.target,
        "schema": _schema(file, certificate.unit).written_like(model),
        # The schema describes the target.
        "classes": None,
        "target_range": None,
        "public_steps": False,
        "method": "auto" if plan["method"] == "exact" else plan["method"],
        "expand": _expansion(plan.get("expansion")),
    }
    algorithm = plan["algorithm"]
    network = algorithm if algorithm["name"] == "kan" else None
    return said | _convex(algorithm.get("problem")) | _network(network)


def _schema(file: dict[str, Any], unit: str) -> Schema:
    encoding, target = file["encoding"], file["encoding"]["target"]
    columns: dict[str, Any] = {}
    for column in encoding["inputs"]:
        [(kind, rule)] = column["rule"].items()
        if kind == "values":
            columns[column["column"]] = {"values": rule["values"], "other": rule["other"]}
        else:
            missing = rule.get("missing")
            missing = missing.get("number", "middle") if isinstance(missing, dict) else missing
            columns[column["column"]] = {"range": (rule["lo"], rule["hi"])} | ({"missing": missing} if missing is not None else {})
    if target.get("classes"):
        columns[target["name"]] = {"values": target["classes"], "other": target.get("other", False)}
    else:
        columns[target["name"]] = (target["lo"], target["hi"])
    with warnings.catch_warnings():
        # Two numbers as values look like a range that was misspelt; these come from a schema that was read before.
        warnings.simplefilter("ignore")
        group = file["certificate"]["budget"].get("rows_per_unit", 1)
        return Schema(columns, rows=file["plan"]["rows"], unit=unit, rows_per_unit=group)


def _expansion(expansion: dict[str, Any] | None) -> Any:
    if expansion is None:
        return None
    by = recorded.keyword("expand", expansion["by"])
    count = {"splines": expansion.get("functions"), "fourier": expansion.get("count")}.get(by)
    return f"{by}={count}" if count is not None else UNSAID


def _convex(program: dict[str, Any] | None) -> dict[str, Any]:
    """Parameters of a convex problem. Steps and their size are not in a plan as they were asked for."""
    if program is None:
        return {}
    set_, penalty = program.get("set", {}), program.get("regulariser", {})
    bounded = set_.get("set") not in (None, "everything")
    return {
        "quantile": program.get("level", UNSAID),
        "constraint": set_["set"] if bounded else None,
        "radius": set_.get("radius", UNSAID) if bounded else UNSAID,
        "ridge": penalty.get("ridge") or None,
        "lasso": penalty.get("lasso") or None,
    }


def _network(training: dict[str, Any] | None) -> dict[str, Any]:
    """Parameters of a network that its plan holds."""
    if training is None:
        return {}
    shape = training["shape"]
    return {
        "hidden_layer_sizes": shape["hidden"],
        "spline_basis": shape["basis"],
        "spline_degree": shape["degree"],
        "last_layer": shape["last"],
        "momentum": training["momentum"],
        "step_size": training["step_size"],
        "average": recorded.keyword("average", training["average"]),
        "network_seed": training["seed"],
    }
