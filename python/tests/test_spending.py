"""What is spent is written down before it is spent, and nothing spends silently."""

import json
import pickle

import numpy as np
import pytest
import quietly
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (2000, 3))
    y = np.where(np.abs(X[:, 0]) + 0.1 * X[:, 1] > 0.5, 1, 0)
    return X, y


def model(**more):
    return quietly.LogisticRegression(epsilon=1.0, delta=1e-6, rows=2000, classes=[0, 1], **more)


def test_a_ledger_outlives_its_object_and_refuses_before_reading(tmp_path, people):
    path = tmp_path / "people.ledger"
    with quietly.Ledger(path, quietly.Budget(2.5, 1e-5)) as ledger:
        model().fit(*people)
        assert ledger.spent == pytest.approx((1.0, 1e-6))
    model().fit(*people)  # outside: nothing is written down
    with quietly.Ledger(path) as again:
        model().fit(*people)
        before = path.read_bytes()
        with pytest.raises(quietly.BudgetError, match="the ledger has epsilon 0.5") as refused:
            model().fit(*people)
        assert refused.value.code == "Q07"
        assert path.read_bytes() == before
        assert len(again.entries) == 2 and "logistic" in again.entries[0][1]
        assert "spent epsilon 2" in str(again)
    with pytest.raises(quietly.FileError):
        quietly.Ledger(tmp_path / "none")
    with pytest.raises(quietly.ParameterError):
        quietly.Ledger(path, quietly.Budget(9, 1e-5))
    with pytest.raises(quietly.ParameterError):
        quietly.Ledger(path, refits="maybe")


def test_a_schema_that_names_its_ledger_is_charged_to_it(tmp_path, people, monkeypatch):
    X, y = people
    ledger = quietly.Ledger(tmp_path / "people.ledger", quietly.Budget(9, 1e-4))
    rules = "".join(f"x{k} = {{ range = [-1, 1] }}\n" for k in range(3))
    (tmp_path / "s.toml").write_text('rows = 2000\nledger = "people.ledger"\n[columns]\n' + rules)
    schema = quietly.Schema.read(tmp_path / "s.toml")
    assert schema.ledger == tmp_path / "people.ledger"
    # Also in copies, in other processes, and from another folder.
    monkeypatch.chdir(tmp_path.parent)
    for same in [schema, pickle.loads(pickle.dumps(schema)), schema.for_columns(["x0", "x1", "x2"])]:
        before = len(quietly.Ledger(ledger.path).entries)
        fitted = model(schema=same).fit(X, y)
        assert len(quietly.Ledger(ledger.path).entries) == before + 1
    quietly.tune(model(schema=schema), {"ridge": [0.1, 1.0]}, X, y)
    assert len(quietly.Ledger(ledger.path).entries) == before + 2
    with quietly.Ledger(ledger.path):
        model(schema=schema).fit(X, y)
    with quietly.Ledger(tmp_path / "other", quietly.Budget(9, 1e-4)) as other, pytest.raises(quietly.ParameterError, match="names the ledger"):
        model(schema=schema).fit(X, y)
    assert other.entries == [] and len(quietly.Ledger(ledger.path).entries) == before + 3
    # The path is not in the model; a loaded one asks for the schema, and does not spend beside the ledger.
    fitted.save(tmp_path / "m.quietly")
    assert "people.ledger" not in (tmp_path / "m.quietly").read_text()
    with pytest.raises(quietly.QuietlyError, match="schema"):
        quietly.load(tmp_path / "m.quietly").fit(X, y)


def test_what_fits_several_times_is_refused_or_charged(tmp_path, people):
    X, y = people
    with pytest.raises((quietly.RefitError, ValueError), match="quietly.tune"):
        cross_val_score(model(), X, y, cv=3)
    with pytest.raises(quietly.RefitError, match="sklearn.model_selection"):
        cross_val_score(model(), X, y, cv=3, error_score="raise")
    with pytest.raises(quietly.RefitError, match="quietly.tune"):
        GridSearchCV(model(), {"ridge": [0.1, 1.0]}, cv=2, error_score="raise").fit(X, y)
    with pytest.raises(quietly.RefitError, match="sklearn.ensemble"):
        BaggingRegressor(quietly.LinearRegression(epsilon=1.0)).fit(X, y)
    # Without privacy there is nothing to spend.
    assert len(cross_val_score(model().set_params(epsilon=float("inf")), X, y, cv=2)) == 2
    with quietly.Ledger(tmp_path / "l", quietly.Budget(3, 1e-5), refits="charge") as ledger:
        assert len(cross_val_score(model(), X, y, cv=3)) == 3
        assert ledger.spent == pytest.approx((3.0, 3e-6))
        with pytest.raises(quietly.BudgetError, match="left"):
            cross_val_score(model(), X, y, cv=3, error_score="raise")
    with quietly.Ledger(tmp_path / "m", quietly.Budget(3, 1e-5)) as ledger:
        with pytest.raises(quietly.RefitError):
            cross_val_score(model(), X, y, cv=3, error_score="raise")
        assert ledger.spent == (0, 0)
        # A clone that is fitted by hand is somebody's own decision.
        clone(model()).fit(X, y)
        assert ledger.spent[0] == pytest.approx(1.0)


def test_tuning_pays_once_and_finds_what_is_better(tmp_path, people):
    X, y = people
    grid = {"expand": [None, "splines=4"]}
    base = model(random_state=3).set_params(epsilon=8.0)
    with quietly.Ledger(tmp_path / "l", quietly.Budget(10, 1e-5)) as ledger:
        best = quietly.tune(base, grid, X, y, trials=30)
        assert ledger.spent == pytest.approx((8.0, 1e-6))
        with pytest.raises(quietly.BudgetError):
            quietly.tune(base, grid, X, y)
    assert best.best_params_ == {"expand": "splines=4"} and best.expand == "splines=4"
    assert best.score(X, y) > 0.8 and 0.5 < best.best_score_ <= 1.0
    assert base.expand is None and not hasattr(base, "coef_")
    certificate = json.loads(best.certificate_.to_json())
    assert certificate["epsilon"] <= 8.0 and certificate["selection"]["candidates"] == 2
    assert certificate["selection"]["epsilon"] + certificate["selection"]["order"] <= 8.0
    assert "random number" in str(best.certificate_)
    assert "trials_" not in vars(best) and "n_trials" not in certificate["selection"]
    assert pickle.loads(pickle.dumps(best)).predict(X).tolist() == best.predict(X).tolist()


def test_tuning_on_public_rows_is_free(tmp_path, people):
    X, y = people
    grid = {"expand": [None, "splines=4"]}
    rng = np.random.default_rng(2)
    Z = rng.uniform(-1, 1, (2000, 3))
    public = (Z, np.where(np.abs(Z[:, 0]) > 0.5, 1, 0))
    with quietly.Ledger(tmp_path / "l", quietly.Budget(10, 1e-5)) as ledger:
        best = quietly.tune(model().set_params(epsilon=4.0), grid, X, y, public=public)
        assert len(ledger.entries) == 1 and ledger.spent[0] == pytest.approx(4.0)
    assert best.best_params_ == {"expand": "splines=4"}
    assert any("chosen on rows that are public" in said for said in best.certificate_.public)
    scored = quietly.tune(
        model(random_state=1), grid, X, y, validation=public, validation_is_public=True, trials=20
    )
    assert "public rows" in str(scored.certificate_)


@pytest.mark.parametrize(
    ("grid", "more", "message"),
    [
        ({"epsilon": [1, 2]}, {}, "not for choosing"),
        ({"depth": [1]}, {}, "no parameter 'depth'"),
        ({"ridge": 1}, {}, "grid must be"),
        ({"ridge": [0.1]}, {"trials": 1}, "trials must be"),
        ({"ridge": [0.1]}, {"share": 0}, "share must be"),
        ({"ridge": [0.1]}, {"validation_is_public": True}, "goes with"),
    ],
)
def test_what_cannot_be_tuned_says_why(people, grid, more, message):
    with pytest.raises(quietly.ParameterError, match=message):
        quietly.tune(model(), grid, *people, **more)


def test_without_privacy_there_is_nothing_to_tune_for(people):
    with pytest.raises(quietly.ParameterError, match="use any search"):
        quietly.tune(model().set_params(epsilon=float("inf")), {"ridge": [0.1]}, *people)


def test_a_scaler_hands_its_ranges_on(tmp_path):
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(50, 2, 5000), rng.normal(-3, 1, 5000)])
    y = (X[:, 0] + 2 * X[:, 1] > 44).astype(int)
    schema = quietly.Schema(a=(40, 60), b=(-10, 10), rows=5000)
    scaler = quietly.StandardScaler(epsilon=1.0, schema=schema, random_state=1)
    pipe = make_pipeline(scaler, quietly.LogisticRegression(epsilon=2.0, classes=[0, 1], rows=5000, random_state=2))
    with quietly.Ledger(tmp_path / "l", quietly.Budget(3.1, 1e-4)) as ledger:
        pipe.fit(X, y)
        assert ledger.spent[0] == pytest.approx(3.0)
    assert pipe.score(X, y) > 0.9
    assert scaler.mean_ == pytest.approx(X.mean(axis=0), abs=0.5)
    assert scaler.scale_ == pytest.approx(X.std(axis=0), rel=0.3)
    said = pipe[-1].certificate_.public
    assert any("private scaler" in s for s in said) and not any("[-1, 1]" in s for s in said)
    scaled = scaler.transform(X)
    again = pickle.loads(pickle.dumps(scaler))
    assert (again.transform(X) == scaled).all() and again.certificate_.epsilon <= 1.0
    # Beyond the range is its end; a copy is not the very array.
    assert (scaler.transform([[1e9, 0.0]]) == scaler.transform([[60.0, 0.0]])).all()
    blind = quietly.LogisticRegression(epsilon=2.0, classes=[0, 1], rows=5000).fit(scaled.copy(), y)
    assert any("[-1, 1]" in s for s in blind.certificate_.public)


def test_a_scaler_without_privacy_is_the_plain_one():
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (1000, 2))
    scaler = quietly.StandardScaler(epsilon=float("inf"), rows=1000).fit(X)
    assert scaler.mean_ == pytest.approx(X.mean(axis=0)) and scaler.scale_ == pytest.approx(X.std(axis=0))
    assert scaler.transform(X) == pytest.approx((X - X.mean(axis=0)) / X.std(axis=0))
    assert scaler.certificate_.test_only
    centred = quietly.StandardScaler(epsilon=float("inf"), rows=1000, with_std=False).fit(X)
    assert centred.transform(X) == pytest.approx(X - X.mean(axis=0))
    wide = quietly.StandardScaler(epsilon=float("inf"), rows=1000, with_mean=False).fit(X)
    assert wide.transform(X) == pytest.approx(X / X.std(axis=0))


def test_a_budget_is_a_value():
    budget = quietly.Budget(1.0, 1e-6)
    assert (budget.epsilon, budget.delta, budget.neighbours) == (1.0, 1e-6, "add-remove")
    assert pickle.loads(pickle.dumps(budget)) == budget != quietly.Budget(1.0, 1e-6, "replace-one")
    for wrong in [(0, 1e-6), (1, 1), (1, -1), (float("nan"), 1e-6)]:
        with pytest.raises(quietly.QuietlyError):
            quietly.Budget(*wrong)


def test_worker_processes_are_charged_too(tmp_path, people):
    from joblib import Parallel, delayed
    from sklearn.compose import ColumnTransformer

    X, y = people
    scaler = quietly.StandardScaler(epsilon=1.0, delta=1e-6, rows=2000)
    both = ColumnTransformer([("a", scaler, [0]), ("b", clone(scaler), [1])], n_jobs=2)
    with quietly.Ledger(tmp_path / "l", quietly.Budget(3, 1e-5)) as ledger:
        both.fit(X)
        assert quietly.Ledger(ledger.path).spent == pytest.approx((2.0, 2e-6))
        with pytest.raises(quietly.BudgetExceededError):
            Parallel(n_jobs=2)(delayed(clone(model()).fit)(X, y) for _ in range(2))
        assert quietly.Ledger(ledger.path).spent == pytest.approx((3.0, 3e-6))


def test_threads_have_their_own_ledgers(tmp_path, people):
    import threading

    mine, other = (quietly.Ledger(tmp_path / name, quietly.Budget(3, 1e-5)) for name in "ab")
    opened, done = threading.Event(), threading.Event()

    def elsewhere() -> None:
        with other:
            opened.set()
            done.wait(60)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    opened.wait(60)
    try:
        with mine:
            model().fit(*people)
    finally:
        done.set()
        thread.join()
    assert mine.spent == pytest.approx((1.0, 1e-6)) and other.spent == (0, 0)
