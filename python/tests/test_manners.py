"""Pipelines, column transformers and set_output; and nothing of scikit-learn's that is private."""

import pathlib
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder

import quietly

PACKAGE = pathlib.Path(quietly.__file__).parent


def test_nothing_private_is_taken_from_scikit_learn():
    taken = []
    for path in PACKAGE.glob("*.py"):
        for line in path.read_text().splitlines():
            if found := re.match(r"\s*(?:from|import)\s+(sklearn[\w.]*)(?:\s+import\s+(.*))?", line):
                taken.append(found[0])
                assert not re.search(r"(^|[.\s(])_\w", " ".join(part for part in found.groups() if part)), line
    assert len(taken) >= 3


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 100, 2000), "hours": rng.uniform(0, 80, 2000), "sex": rng.choice(["F", "M"], 2000)})
    frame["rich"] = np.where(frame.age + frame.hours > 90, "yes", "no")
    return frame


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_column_transformers_and_their_outputs(people, output):
    """Fixed maps, which learn nothing from the table: what a fitted one learnt would not be private."""
    transformer = ColumnTransformer(
        [
            ("numbers", FunctionTransformer(lambda x: x / 50 - 1, feature_names_out="one-to-one"), ["age", "hours"]),
            ("sex", OneHotEncoder(categories=[["F", "M"]], handle_unknown="ignore", drop="first", sparse_output=False), ["sex"]),
        ]
    )
    transformer.set_output(transform=output)
    model = make_pipeline(transformer, quietly.LogisticRegression(epsilon=20, random_state=1, classes=["no", "yes"]))
    X, Xt, y, yt = train_test_split(people.drop(columns="rich"), people["rich"], random_state=0)
    if output == "polars":
        try:
            transformer.fit_transform(X)
        except ValueError:
            pytest.skip("this scikit-learn alone cannot make this polars frame")
    assert model.fit(X, y).score(Xt, yt) > 0.85
    names = getattr(model[-1], "feature_names_in_", None)
    if output == "default":
        assert names is None
    else:
        assert list(names) == ["numbers__age", "numbers__hours", "sex__sex_M"]


def test_sparse_output_of_a_transformer(people):
    transformer = ColumnTransformer(
        [("sex", OneHotEncoder(categories=[["F", "M"]], handle_unknown="ignore"), ["sex"]), ("age", OneHotEncoder(categories=[list(range(10))], handle_unknown="ignore"), ["age"])],
        sparse_threshold=1.0,
    )
    frame = people.assign(age=(people.age // 10).astype(int))
    model = make_pipeline(transformer, quietly.LogisticRegression(epsilon=20, random_state=1, rows=2000, classes=["no", "yes"]))
    assert model.fit(frame, frame["rich"]).score(frame, frame["rich"]) > 0.7


def test_a_scaler_before_a_model(people):
    X = people[["age", "hours"]].to_numpy()
    model = make_pipeline(MinMaxScaler(feature_range=(-1, 1)), quietly.LinearSVC(epsilon=20, random_state=1, public_steps=True))
    assert model.fit(X, people["rich"]).score(X, people["rich"]) > 0.85
