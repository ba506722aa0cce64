"""What a new user stumbles over is said, or works."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import quietly

RNG = np.random.default_rng(3)
SHOP = pd.DataFrame({"age": RNG.uniform(18, 90, 3000), "visits": RNG.integers(0, 30, 3000)})
SHOP["spend"] = 5 * SHOP.visits + RNG.normal(0, 5, 3000)
SHOP["member"] = np.where(SHOP.visits > 12, "yes", "no")
SCHEMA = quietly.Schema(age=(0, 110), visits=(0, 30), spend=(0, 300), member=["no", "yes"], rows=3000, unit="customer")
# What the schema describes must be there: a model of some columns takes their part of it.
MEMBER, SPEND = (SCHEMA.for_columns(["age", "visits", target]) for target in ("member", "spend"))
X = SHOP[["age", "visits"]]


def test_one_schema_serves_several_models():
    member = quietly.LogisticRegression(schema=MEMBER).fit(X, SHOP.member)
    spend = quietly.LinearRegression(schema=SPEND).fit(X, SHOP.spend)
    assert list(member.feature_names_in_) == list(spend.feature_names_in_) == ["age", "visits"]
    assert member.score(X, SHOP.member) > 0.8 and spend.score(X, SHOP.spend) > 0.8


def test_a_schema_of_features_goes_with_classes_and_ranges():
    features = quietly.Schema(age=(0, 110), visits=(0, 30), rows=3000)
    model = quietly.LogisticRegression(schema=features, classes=["no", "yes"]).fit(X, SHOP.member)
    assert list(model.classes_) == ["no", "yes"]
    assert quietly.LinearRegression(schema=features, target_range=(0, 300)).fit(X, SHOP.spend).score(X, SHOP.spend) > 0.8


def test_scores_of_names_and_files(tmp_path):
    model = quietly.LogisticRegression(schema=MEMBER).fit(X, SHOP.member)
    plain = model.score(X, SHOP.member)
    SHOP.to_csv(tmp_path / "shop.csv", index=False)
    assert model.score(SHOP, "member") == plain
    assert model.score(tmp_path / "shop.csv", "member") == pytest.approx(plain)
    with pytest.raises(quietly.DataError, match="name of the column"):
        model.score(tmp_path / "shop.csv", SHOP.member)


def test_no_row_decides_whether_there_is_a_model():
    none = quietly.LogisticRegression(schema=MEMBER).fit(X[:0], SHOP.member[:0])
    one = quietly.LogisticRegression(schema=MEMBER).fit(X[:1], SHOP.member[:1])
    assert none.coef_.shape == one.coef_.shape
    for cell in (np.nan, np.inf):
        y = (SHOP.visits > 12).to_numpy(dtype=float, copy=True)
        y[7] = cell
        model = quietly.LogisticRegression(rows=3000).fit(X.to_numpy() / 110, y)
        assert list(model.classes_) == [0, 1]
    with pytest.raises(quietly.DataError, match="Declare the labels"):
        quietly.LogisticRegression(rows=3000).fit(X.to_numpy(), RNG.uniform(0, 1, 3000))


def test_types_that_cannot_hold_the_labels_are_refused():
    model = quietly.LogisticRegression(schema=MEMBER)
    for y in (SHOP.member == "yes", (SHOP.member == "yes").astype(int)):
        with pytest.raises(quietly.DataError, match="convert the column"):
            model.fit(X, y.rename("member"))
    with pytest.raises(quietly.ParameterError, match="a list of all labels"):
        quietly.LogisticRegression(classes="no").fit(X, SHOP.member)
    dated = X.assign(age=pd.Timestamp("2020-01-01"))
    with pytest.raises(quietly.ColumnTypesError, match="'age' holds dates"):
        model.fit(dated, SHOP.member)


def test_lists_that_look_like_ranges_are_told():
    with pytest.warns(UserWarning, match=r"age=\(0, 110\)"):
        quietly.Schema(age=[0, 110])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quietly.Schema(sick=[0, 1], sign=[-1, 1], kind=[1, 2, 3], age=(0, 110))


def test_what_the_planner_warns_of_is_heard():
    small = quietly.LinearRegression(schema=quietly.Schema(age=(0, 110), spend=(0, 300), rows=5), epsilon=0.01)
    assert "warning: " in str(small.plan(target="spend"))
    with pytest.warns(UserWarning):
        small.fit(SHOP[["age"]][:5], SHOP.spend[:5])


def test_messages_name_what_was_wrong():
    with pytest.raises(quietly.ParameterError, match="target must be given"):
        quietly.LinearRegression(schema=SPEND).plan()
    for rows in (0, -1, True, 1.5):
        with pytest.raises(quietly.ParameterError, match="rows must be a whole number"):
            quietly.LinearRegression(schema=SPEND, rows=rows).fit(X, SHOP.spend)
    with pytest.raises(quietly.DataError) as refused:
        quietly.LinearRegression(schema=SPEND).fit(X, SHOP.spend[:-1])
    assert not any(digit in str(refused.value) for digit in "0123456789")
    with pytest.raises(quietly.ParameterError, match="quietly.Budget"):
        quietly.Ledger("nowhere", 3.0)


def test_certificates_are_pickled_and_seeds_are_seen():
    pytest.importorskip("matplotlib")
    model = quietly.LogisticRegression(schema=MEMBER, random_state=1).fit(X, SHOP.member)
    assert str(pickle.loads(pickle.dumps(model.certificate_))) == str(model.certificate_)
    assert "TEST ONLY" in model.plot().axes[0].get_title()
    model.set_params(epsilon=float("inf")).fit(X, SHOP.member)
    assert "NO PRIVACY" in model.plot().axes[0].get_title()
    assert quietly.accounting.epsilon("gaussian", noise_multiplier=1.0, delta=1e-5)
