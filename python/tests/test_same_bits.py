"""Whatever holds the table, the model is that of the command line, bit for bit."""

import json

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import quietly

CASES = [
    ("auto", quietly.AutoRegressor, "pay", {"epsilon": 20.0}),
    ("auto", quietly.AutoClassifier, "income", {}),
    ("linear", quietly.LinearRegression, "pay", {}),
    ("linear", quietly.LinearRegression, "pay", {"method": "one-pass", "epsilon": 20.0}),
    ("linear", quietly.LinearRegression, "pay", {"constraint": "l2", "radius": 2.0, "ridge": 0.01}),
    ("relu", quietly.ReLURegression, "pay", {}),
    ("quantile", quietly.QuantileRegressor, "pay", {"quantile": 0.8}),
    ("logistic", quietly.LogisticRegression, "income", {}),
    ("logistic", quietly.LogisticRegression, "income", {"expand": "splines=5", "delta": 1e-6}),
    ("logistic", quietly.LogisticRegression, "kind", {"neighbours": "replace-one"}),
    ("svm", quietly.LinearSVC, "income", {}),
    ("kan", quietly.KANClassifier, "income", {"epochs": 20, "hidden_layer_sizes": [8], "spline_basis": 5, "noise_correlation": "lambda=0.5"}),
    ("kan", quietly.KANRegressor, "pay", {"epochs": 10, "hidden_layer_sizes": [8, 4], "last_layer": "trainable"}),
]


def flags(wishes):
    for name, value in wishes.items():
        yield "--" + name.replace("_", "-")
        yield ",".join(map(str, value)) if isinstance(value, list) else str(value)


def but_for_files(certificate):
    """A certificate but for the files that were read: a table in memory has none."""
    public = [line for line in certificate["public"] if not line.startswith("the files that were read")]
    return certificate | {"public": public}


def learnt(model: dict) -> dict:
    return {k: model.get(k) for k in ("link", "weights", "intercept", "intercepts", "rows", "columns", "bends", "network", "encoding", "plan")}


@pytest.mark.parametrize("word, kind, target, wishes", CASES, ids=lambda x: str(getattr(x, "__name__", x))[:40])
def test_every_door_leads_to_the_same_model(word, kind, target, wishes, people, csv, command, schema, tmp_path):
    wishes = {"epsilon": 4.0, **wishes}
    typed = command(word, target, "--seed", "11", *flags(wishes))
    X, y = people[["age", "hours", "sex"]], people[target]
    whole = people[["age", "hours", "sex", target]]
    doors = {
        "pandas": (X, y),
        "pandas, by name": (whole, target),
        "polars": (pl.DataFrame(X.to_dict("list")), pl.Series(target, y.tolist())),
        "arrow": (pa.table(whole.to_dict("list")), target),
        "arrow in chunks": (pa.concat_tables([pa.table(whole[:7].to_dict("list")), pa.table(whole[7:].to_dict("list"))]), target),
        "objects": (X.to_numpy(dtype=object), y.to_numpy()),
        "file": (csv, target),
    }
    for n_jobs, (door, (X_there, y_there)) in enumerate(doors.items(), 1):
        model = kind(schema=schema(target), random_state=11, target=target, n_jobs=n_jobs, **wishes).fit(X_there, y_there)
        model.save(tmp_path / "model.quietly", overwrite=True)
        mine = json.loads((tmp_path / "model.quietly").read_text())
        assert learnt(mine) == learnt(typed), door
        assert but_for_files(mine["certificate"]) == but_for_files(typed["certificate"]), door
        named = mine["certificate"]["public"] == typed["certificate"]["public"]
        assert named == (door == "file"), door
    loaded = quietly.load(typed["path"])
    assert type(loaded) is kind
    assert (loaded.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numpy_in_any_order_is_the_same(dtype):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.2, 1.2, (2000, 4)).astype(dtype)
    y = (X @ [0.5, -0.2, 0.1, 0]).astype(dtype)
    wide = np.zeros((2000, 9), dtype=dtype)
    wide[:, ::2][:, :4] = X
    fits = [
        quietly.LinearRegression(epsilon=3, random_state=5).fit(A, y)
        for A in (X, np.asfortranarray(X), wide[:, ::2][:, :4], X.astype(np.float64), X.astype(X.dtype.newbyteorder()), X.tolist())
    ]
    assert all((fit.coef_ == fits[0].coef_).all() and fit.intercept_ == fits[0].intercept_ for fit in fits)
    assert len({fit.predict(X).tobytes() for fit in fits}) == 1
