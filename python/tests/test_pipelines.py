"""Steps before a private model that learn from the rows are refused, or stand in the certificate."""

import numpy as np
import pytest
from sklearn import decomposition, feature_extraction, feature_selection, preprocessing
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline

import quietly
from quietly import pipelines

X = np.random.default_rng(0).uniform(0, 1, (300, 3))
Y = np.where(X[:, 0] > 0.5, "a", "b")

# 20 transformers of scikit-learn with other parameters of some of them, and whether they learn from the rows.
TABLE = [
    (preprocessing.StandardScaler(), True),
    (preprocessing.MinMaxScaler(), True),
    (preprocessing.RobustScaler(), True),
    (preprocessing.MaxAbsScaler(), True),
    (preprocessing.QuantileTransformer(), True),
    (preprocessing.PowerTransformer(), True),
    (preprocessing.KBinsDiscretizer(), True),
    (preprocessing.TargetEncoder(), True),
    (preprocessing.OneHotEncoder(), True),
    (preprocessing.OneHotEncoder(categories=[["x", "y"]], handle_unknown="ignore"), False),
    # A category that is not listed raises an error, which quotes the cell.
    (preprocessing.OneHotEncoder(categories=[["x", "y"]]), True),
    (preprocessing.OneHotEncoder(categories=[["x", "y"]], handle_unknown="ignore", min_frequency=2), True),
    (preprocessing.OneHotEncoder(categories=[["x", "y"]], handle_unknown="ignore", max_categories=2), True),
    (preprocessing.OrdinalEncoder(), True),
    (preprocessing.OrdinalEncoder(categories=[["x", "y"]], handle_unknown="use_encoded_value", unknown_value=-1), False),
    (preprocessing.OrdinalEncoder(categories=[["x", "y"]]), True),
    (preprocessing.SplineTransformer(), True),
    (preprocessing.SplineTransformer(knots="quantile"), True),
    (preprocessing.SplineTransformer(knots=np.linspace(0, 1, 5)[:, None]), False),
    (preprocessing.PolynomialFeatures(2), False),
    (preprocessing.FunctionTransformer(np.log1p), False),
    (preprocessing.Normalizer(), False),
    (preprocessing.Binarizer(threshold=0.5), False),
    (feature_extraction.text.HashingVectorizer(), False),
    (feature_extraction.text.TfidfVectorizer(), True),
    (SimpleImputer(), True),
    # A column without a value is left out: one row decides how many features there are.
    (SimpleImputer(strategy="constant", fill_value=0), True),
    (SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True), False),
    (SimpleImputer(strategy="constant", add_indicator=True), True),
    (KNNImputer(), True),
    (decomposition.PCA(2), True),
    (decomposition.TruncatedSVD(2), True),
    (feature_selection.VarianceThreshold(), True),
    (feature_selection.SelectKBest(k=2), True),
    (quietly.StandardScaler(), False),
    ("passthrough", False),
    (None, False),
]
assert len({type(step) for step, _ in TABLE}) >= 22

NESTS = {
    "alone": lambda step: step,
    "ColumnTransformer": lambda step: ColumnTransformer([("a", "passthrough", [0]), ("b", step or "drop", [1])]),
    "remainder": lambda step: ColumnTransformer([("a", "passthrough", [0])], remainder=step or "drop"),
    "FeatureUnion": lambda step: FeatureUnion([("a", preprocessing.Normalizer()), ("b", step)]),
    "Pipeline": lambda step: Pipeline([("a", preprocessing.Normalizer()), ("b", step)]),
    "all": lambda step: Pipeline([("u", FeatureUnion([("c", ColumnTransformer([("p", Pipeline([("s", step)]), [0])]))]))]),
}


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
@pytest.mark.parametrize("step, learns", TABLE, ids=lambda x: str(x).replace("\n", "")[:60])
def test_every_transformer_has_its_verdict(step, learns, nest):
    assert list(pipelines.learners(nest(step))) == ([type(step).__name__] if learns else [])


def model(**more):
    return quietly.LogisticRegression(**{"epsilon": 1.0, "delta": 1e-6, "classes": ["a", "b"], "rows": 300, "random_state": 1} | more)


@pytest.mark.filterwarnings("ignore:no schema was given")
def test_a_pipeline_is_refused_before_anything_is_charged(tmp_path):
    scaler, pca = preprocessing.StandardScaler(), decomposition.PCA(2)
    with quietly.Ledger(tmp_path / "l", quietly.Budget(9, 1e-4)) as ledger:
        for pipe in [
            make_pipeline(scaler, pca, model()),
            make_pipeline(scaler, make_pipeline(preprocessing.Normalizer(), model())),
            make_pipeline(FeatureUnion([("a", scaler), ("b", "passthrough")]), model()),
            make_pipeline(scaler, quietly.StandardScaler(epsilon=1.0, rows=300), preprocessing.Normalizer()),
        ]:
            with pytest.raises(quietly.UncoveredStepError, match="StandardScaler.* without noise.*quietly.StandardScaler") as refused:
                pipe.fit(X, Y)
            assert refused.value.code == "P01" and isinstance(refused.value, quietly.BudgetError)
        with pytest.raises(quietly.UncoveredStepError, match="MinMaxScaler"):
            regressor = quietly.LinearRegression(epsilon=1.0, rows=300)
            TransformedTargetRegressor(regressor, transformer=preprocessing.MinMaxScaler()).fit(X, X[:, 0])
        assert ledger.entries == []
        # What comes after the model's place, or learns nothing, is no step before it.
        make_pipeline(preprocessing.Normalizer(), "passthrough", model()).fit(X, Y)
        make_pipeline(quietly.StandardScaler(epsilon=1.0, delta=1e-6, rows=300), decomposition.PCA(2)).fit(X, Y)
        assert len(ledger.entries) == 2


@pytest.mark.filterwarnings("ignore:no schema was given")
def test_whoever_insists_has_it_in_the_certificate(tmp_path):
    said = "what StandardScaler, PCA before the model learnt from the rows"
    pipe = make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2), model(public_steps=True)).fit(X, Y)
    plain = model().fit(X, Y).certificate_.not_covered
    assert pipe[-1].certificate_.not_covered == [*plain, said] and said not in plain
    pipe[-1].save(tmp_path / "m")
    assert said in quietly.load(tmp_path / "m").certificate_.not_covered and said in str(pipe[-1].certificate_)
    scaler = quietly.StandardScaler(epsilon=1.0, rows=300, public_steps=True)
    assert said.replace(", PCA", "") in make_pipeline(preprocessing.StandardScaler(), scaler).fit(X)[-1].certificate_.not_covered
    # Without noise nothing is promised, and nothing is refused.
    make_pipeline(preprocessing.StandardScaler(), model(epsilon=float("inf"))).fit(X, Y)
    with pytest.raises(quietly.ParameterError, match="public_steps"):
        model(public_steps="yes").fit(X, Y)


@pytest.mark.filterwarnings("ignore:no schema was given")
def test_a_function_of_several_rows_is_not_covered():
    said = "what a FunctionTransformer before the model computes from more than one row"
    centred = preprocessing.FunctionTransformer(lambda Z: Z - Z.mean(0))
    for step in [centred, make_pipeline(centred), FeatureUnion([("a", centred)])]:
        assert said in make_pipeline(step, model()).fit(X, Y)[-1].certificate_.not_covered
    assert said not in make_pipeline(preprocessing.Normalizer(), model()).fit(X, Y)[-1].certificate_.not_covered


def test_a_scaler_hands_on_the_unit_and_the_ledger(tmp_path):
    quietly.Ledger(tmp_path / "people.ledger", quietly.Budget(9, 1e-4))
    rules = "".join(f"x{k} = {{ range = [0, 1] }}\n" for k in range(3))
    head = 'rows = 300\nunit = "person"\nrows_per_unit = 4\nledger = "people.ledger"\n[columns]\n'
    (tmp_path / "s.toml").write_text(head + rules)
    schema = quietly.Schema.read(tmp_path / "s.toml")
    pipe = make_pipeline(quietly.StandardScaler(epsilon=2.0, delta=1e-5, schema=schema), model()).fit(X, Y)
    for step in pipe:
        assert "4 rows" in str(step.certificate_) and step.certificate_.unit == "person"
    assert len(quietly.Ledger(tmp_path / "people.ledger").entries) == 2


def test_what_does_not_say_that_it_learns_nothing_is_taken_to_learn():
    class Own(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

    class Silent:
        pass

    class Stateless(Own):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.requires_fit = False
            return tags

    class Encoder(preprocessing.PolynomialFeatures):
        """A subclass may learn what its parent does not."""

    assert [list(pipelines.learners(step)) for step in (Own(), Silent(), Stateless(), Encoder())] == [["Own"], ["Silent"], [], ["Encoder"]]
