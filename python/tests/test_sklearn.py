"""scikit-learn's own checks, and what people do with estimators."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import quietly
import quietly.estimators

KINDS = [
    quietly.AutoRegressor,
    quietly.AutoClassifier,
    quietly.LinearRegression,
    quietly.ReLURegression,
    quietly.QuantileRegressor,
    quietly.LogisticRegression,
    quietly.LinearSVC,
    quietly.KANClassifier,
    quietly.KANRegressor,
]
# Networks are told how to sample: otherwise their planner compares all ways, for seconds each time.
QUICK = {"sampler": "full-batch", "noise_correlation": "independent", "epochs": 100, "hidden_layer_sizes": (16,)}
ESTIMATORS = [kind(**QUICK) if "KAN" in kind.__name__ else kind() for kind in KINDS] + [quietly.StandardScaler()]

NO_CELL_DECIDES = "no cell decides between success and failure: a target that is not finite makes a null record, or is cut"
REASONS = {
    "AutoRegressor": {"check_supervised_y_no_nan": NO_CELL_DECIDES},
    "LinearRegression": {"check_supervised_y_no_nan": NO_CELL_DECIDES},
    "QuantileRegressor": {"check_supervised_y_no_nan": NO_CELL_DECIDES},
    "KANRegressor": {"check_supervised_y_no_nan": NO_CELL_DECIDES},
    "ReLURegression": {
        "check_supervised_y_no_nan": NO_CELL_DECIDES,
        "check_regressors_train": "the check's targets are half negative, and this model predicts none of those",
    },
}


def expected(estimator):
    return REASONS.get(type(estimator).__name__, {})


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_the_checks_of_scikit_learn(estimator, check):
    if "epsilon" in estimator.get_params():
        estimator.set_params(epsilon=1000.0)
    check(estimator)


X = np.random.default_rng(2).uniform(-1, 1, (400, 3))
Y = X[:, 0] - X[:, 1] / 2


@pytest.mark.parametrize("kind", KINDS)
def test_clones_pipelines_and_pickles(kind):
    y = Y / 2 if issubclass(kind, quietly.kinds._Regressor) else np.where(Y > 0, "yes", "no")
    model = clone(kind(epsilon=2.0, **(QUICK if "KAN" in kind.__name__ else {}))).set_params(random_state=4, n_jobs=1)
    pipeline = make_pipeline(FunctionTransformer(), model).fit(X, y)
    said = pipeline.predict(X)
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(X) == said).all() and again[-1].certificate_.epsilon <= 2.0
    assert str(again[-1].certificate_) == str(model.certificate_)
    assert (clone(model).fit(X, y).predict(X) == said).all()


def test_importing_is_quick_and_leaves_scikit_learn_alone():
    code = "import numpy, time; t = time.perf_counter(); import quietly; print(time.perf_counter() - t); import sys; print('sklearn' in sys.modules)"
    seconds, loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == "False" and float(seconds) < 1.0
