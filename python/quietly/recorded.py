"""The parameters of an estimator in its model file, so that ``load`` gives them back."""

import json
import math
from typing import Any

import numpy as np

from ._quietly import Schema
from .errors import ModelError, UnsaidError
from .parameters import RENAMED

# These say how a fit was run, and not what was asked for. A seed would let readers of the file remove the noise.
LEFT_OUT = frozenset({"random_state", "n_jobs", "verbose"})


class _Unsaid:
    """In place of a parameter that a model file does not say. ``fit`` refuses it."""

    def __repr__(self) -> str:
        return "<not in the model file>"

    def __reduce__(self) -> str:
        # The one of this module, in copies, clones and pickles, too.
        return "UNSAID"


UNSAID = _Unsaid()


def check_said(estimator: Any) -> None:
    """Refuses a fit with parameters that the file of a loaded model does not say."""
    unsaid = [name for name, value in estimator.get_params(deep=False).items() if value is UNSAID]
    if unsaid:
        said = ", ".join(f"{name}=..." for name in unsaid)
        raise UnsaidError(
            f"this model was loaded from a file that does not say its {', '.join(unsaid)}: set what the fit shall take, with set_params({said}). "
            "Nothing was spent"
        )


def written(estimator: Any) -> str:
    """The parameters of an estimator as JSON."""
    said = estimator.get_params(deep=False).items()
    return json.dumps({name: _plain(value) for name, value in said if name not in LEFT_OUT and not _names_ledger(value)})


def _names_ledger(value: Any) -> bool:
    # The path of a ledger does not belong in a model. Without the schema, another fit asks for it, and does not spend beside the ledger.
    return isinstance(value, Schema) and value.ledger is not None


def read(text: str) -> dict[str, Any]:
    """The parameters that ``written`` wrote."""
    try:
        said = {RENAMED.get(name, name): _value(value) for name, value in json.loads(text).items()}
        return {name: keyword(name, value) for name, value in said.items()}
    except Exception:
        pass
    raise ModelError.coded("Q04", "the parameters in the model file are damaged")


# Keywords of earlier versions, and what they are called now.
_KEYWORDS = {
    "sampler": {"full": "full-batch", "bins": "balls-and-bins"},
    "average": {"half": "last-half", "lot": "random"},
    "clipping_norm": {"never": "none"},
}


def keyword(name: str, value: Any) -> Any:
    """The value of a parameter as it is called now."""
    if not isinstance(value, str):
        return value
    if name == "expand":
        return value.replace("waves", "fourier")
    if name == "noise_correlation":
        return value.replace("bands", "banded")
    return _KEYWORDS.get(name, {}).get(value, value)


def _plain(value: Any) -> Any:
    """A parameter in words of JSON. What JSON has no word for is an object with one member."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Schema):
        # Line by line: a model file holds no control characters.
        text, has_rows, _ = value.__reduce__()[1]
        return {"schema": [text.splitlines(), has_rows]}
    if isinstance(value, tuple):
        return {"tuple": [_plain(part) for part in value]}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, str) and value.isprintable() or value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    if hasattr(value, "tolist") and not isinstance(parts := value.tolist(), type(value)):
        # Arrays, and columns of pandas and pyarrow, as labels.
        return _plain(parts)
    return {"unsaid": type(value).__name__}


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        parts = [_value(part) for part in plain]
        # A list of which a part is not there is not what was given.
        return UNSAID if any(part is UNSAID for part in parts) else parts
    if not isinstance(plain, dict):
        return plain
    [(kind, value)] = plain.items()
    match kind:
        case "schema":
            lines, has_rows = value
            return Schema.parse("\n".join(lines), has_rows)
        case "tuple":
            parts = _value(value)
            return parts if parts is UNSAID else tuple(parts)
        case "float":
            return float(value)
        case _:
            return UNSAID
