"""A model that is loaded asks for what the first fit asked for."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import quietly
from quietly.recorded import LEFT_OUT, UNSAID

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.uniform(0, 100, 400), "sex": RNG.choice(["F", "M"], 400)})
PAY, KIND = (FRAME.age / 2).rename("pay"), np.where(FRAME.age > 50, "old", "young")
SCHEMA = quietly.Schema(age={"range": (0, 100), "missing": 40}, sex=["F", "M"], unit="person", rows=400)
NETWORK = {"sampler": "full-batch", "noise_correlation": "independent", "epochs": 3, "hidden_layer_sizes": (4, 2), "clipping_norm": 0.5}
REGRESSION = {"schema": SCHEMA.with_column("pay", (0, 50)), "target": "pay", "delta": 1e-7}
CLASSES = {"schema": SCHEMA, "classes": ["old", "young"], "neighbours": "replace-one", "rows": 350}
ESTIMATORS = [
    quietly.LinearRegression(**REGRESSION, epsilon=0.1, ridge=0.01, constraint="l2", radius=2.0),
    quietly.LinearRegression(epsilon=0.7, target_range=(0, 50)),
    quietly.LinearRegression(epsilon=float("inf"), schema=SCHEMA, target_range=[0, 50]),
    quietly.ReLURegression(**REGRESSION, epsilon=np.float64(3.0), method="full-batch"),
    quietly.QuantileRegressor(**REGRESSION, quantile=0.9),
    quietly.HuberRegressor(**REGRESSION, epsilon=2.0, expand="splines=4"),
    quietly.LogisticRegression(**CLASSES, epsilon=0.25, lasso=0.001, constraint="l1", radius=4.0),
    quietly.LinearSVC(**CLASSES, epsilon=4, public_steps=True),
    quietly.KANClassifier(**CLASSES, **NETWORK, epsilon=2.0),
    quietly.KANRegressor(**REGRESSION, **NETWORK, epsilon=2.0),
    quietly.AutoRegressor(**REGRESSION, epsilon=8.0),
    quietly.AutoRegressor(epsilon=0.2, target_range=(0, 50)),
    quietly.AutoClassifier(**CLASSES, epsilon=1.0),
]
assert {type(kind).__name__ for kind in ESTIMATORS} == {
    name for name in quietly.__all__ if hasattr(getattr(quietly, name), "fit") and name != "StandardScaler"
}


def asked(estimator) -> dict:
    return {name: value for name, value in estimator.get_params().items() if name not in LEFT_OUT}


def fitted(estimator):
    X = FRAME if estimator.schema is not None else FRAME[["age"]] / 100
    return clone(estimator).set_params(random_state=3, n_jobs=1, verbose=False).fit(X, KIND if hasattr(estimator, "classes") else PAY), X


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: type(kind).__name__)
def test_a_loaded_estimator_has_the_parameters_of_the_fit(estimator, tmp_path):
    model, X = fitted(estimator)
    model.save(tmp_path / "m.quietly")
    loaded = quietly.load(tmp_path / "m.quietly")
    assert type(loaded) is type(model) and asked(loaded) == asked(model)
    assert {name: type(value) for name, value in asked(loaded).items()} == {
        name: float if isinstance(value, np.float64) else type(value) for name, value in asked(model).items()
    }
    assert [loaded.get_params()[name] for name in sorted(LEFT_OUT)] == [None] * 3
    assert (loaded.predict(X) == model.predict(X)).all()
    assert asked(pickle.loads(pickle.dumps(loaded))) == asked(clone(loaded)) == asked(model)
    # Parameters that were changed after the fit are not those of the model.
    model.set_params(epsilon=9.0).save(tmp_path / "m.quietly")
    assert quietly.load(tmp_path / "m.quietly").epsilon == estimator.epsilon
    # Another fit asks for what the first did.
    target = KIND if hasattr(loaded, "classes") else PAY
    again = loaded.fit(X, target).certificate_
    assert (again.budget, again.delta, again.neighbours) == (model.certificate_.budget, model.certificate_.delta, model.certificate_.neighbours)


@pytest.mark.filterwarnings("ignore")
def test_a_tuned_model_has_the_parameters_that_were_chosen(tmp_path):
    best = quietly.tune(ESTIMATORS[6].__class__(**CLASSES, epsilon=2.0), {"ridge": [0.1, 0.2]}, FRAME, KIND, trials=2)
    best.save(tmp_path / "m")
    assert asked(quietly.load(tmp_path / "m")) == asked(best) and best.ridge in (0.1, 0.2)


WORDS = {"LinearRegression": "linear", "ReLURegression": "relu", "QuantileRegressor": "quantile", "HuberRegressor": "robust",
         "LogisticRegression": "logistic", "LinearSVC": "svm", "KANClassifier": "kan", "KANRegressor": "kan",
         "AutoRegressor": "auto", "AutoClassifier": "auto"}  # fmt: skip


def without_parameters(path):
    """Makes a model file one of an older version, which had no parameters."""
    file = json.loads(path.read_text())
    del file["parameters"], file["digest"]
    path.write_text(json.dumps(file))
    return file


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: type(kind).__name__)
def test_files_without_parameters_say_what_they_can(estimator, tmp_path):
    """Those of older versions and of the command line. What they do not say, a fit refuses."""
    model, X = fitted(estimator)
    model.save(tmp_path / "m.quietly")
    file = without_parameters(tmp_path / "m.quietly")
    loaded = quietly.load(tmp_path / "m.quietly")
    assert type(loaded) is type(model) and (loaded.predict(X) == model.predict(X)).all()
    certificate = model.certificate_
    said = ("epsilon", "delta", "neighbours", "rows", "target")
    assert [loaded.get_params()[name] for name in said] == [certificate.budget, certificate.delta, certificate.neighbours, model.plan_.rows, file["target"]]
    for name in ("constraint", "ridge", "lasso", "quantile", "expand", "hidden_layer_sizes"):
        value = getattr(loaded, name, UNSAID)
        assert value is UNSAID or value == (list(model.hidden_layer_sizes) if name == "hidden_layer_sizes" else getattr(model, name)), name
    unsaid = [name for name, value in loaded.get_params().items() if value is UNSAID]
    target = KIND if hasattr(loaded, "classes") else PAY
    X = pd.DataFrame(X)
    if unsaid:
        with quietly.Ledger(tmp_path / "l", quietly.Budget(900, 0.1)) as ledger:
            for work in (lambda: loaded.fit(X, target), lambda: clone(loaded).plan()):
                with pytest.raises(quietly.UnsaidError, match=unsaid[0]) as refused:
                    work()
            assert refused.value.code == "P03" and ledger.entries == [] and "not in the model file" in repr(loaded)
    again = loaded.set_params(**dict.fromkeys(unsaid)).fit(X, target).certificate_
    assert (again.budget, again.delta) == (certificate.budget, certificate.delta)


@pytest.mark.filterwarnings("ignore")
def test_parameters_that_contradict_the_certificate_are_refused(tmp_path):
    model, _ = fitted(ESTIMATORS[0])
    model.save(tmp_path / "m")
    good = json.loads((tmp_path / "m").read_text())
    del good["digest"]
    for change in ({"epsilon": 5.0}, {"delta": 0.1}, {"neighbours": "replace-one"}, {"schema": {"schema": 5}}, {"epsilon": {"a": 1, "b": 2}}):
        (tmp_path / "m").write_text(json.dumps(good | {"parameters": good["parameters"] | change}))
        with pytest.raises(quietly.ModelError) as refused:
            quietly.load(tmp_path / "m")
        assert refused.value.code == "Q04"


def test_a_decimal_comma_is_remembered(tmp_path):
    rules = "".join(f'{name} = {{ range = [0, 1] }}\n' for name in ("a", "y"))
    (tmp_path / "s.toml").write_text('rows = 500\ndecimal = ","\n[columns]\n' + rules)
    rows = "".join(f"{i % 97 / 97:.4f};{i % 89 / 89:.4f}\n" for i in range(500)).replace(".", ",")
    (tmp_path / "t.csv").write_text("a;y\n" + rows)
    schema = quietly.Schema.read(tmp_path / "s.toml")
    quietly.LinearRegression(epsilon=1.0, schema=schema, random_state=1).fit(str(tmp_path / "t.csv"), "y").save(tmp_path / "m")
    for forget in [False, True]:
        if forget:
            without_parameters(tmp_path / "m")
        loaded = quietly.load(tmp_path / "m")
        assert 'decimal = ","' in loaded.schema.to_toml(), forget


def test_models_of_the_command_line_load(command, people, csv):
    """`fit robust`, which had no estimator, among them."""
    for word, kind in [("robust", quietly.HuberRegressor), ("quantile", quietly.QuantileRegressor), ("linear", quietly.LinearRegression)]:
        path = command(word, "pay", "--seed", "11", "--epsilon", "4")["path"]
        loaded = quietly.load(path)
        assert type(loaded) is kind and loaded.epsilon == 4.0 and loaded.target == "pay" and loaded.rows == 3000
        assert loaded.schema.columns == ["age", "hours", "sex", "pay"] and 'unit = "person"' in loaded.schema.to_toml()
        assert len(loaded.predict(people[["age", "hours", "sex"]])) == len(people) and np.isfinite(loaded.score(csv, "pay"))
