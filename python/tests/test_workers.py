"""Whatever spends is charged, in whichever process it runs."""

import ast
import inspect
import multiprocessing
import os
import pathlib

import numpy as np
import pytest
from joblib.externals.loky import ProcessPoolExecutor

import quietly

ROWS = 300
PACKAGE = pathlib.Path(quietly.__file__).parent
PLAIN = {"epsilon": 0.5, "delta": 1e-6, "rows": ROWS, "n_jobs": 1}
NETWORK = {"sampler": "full-batch", "noise_correlation": "independent", "epochs": 2, "hidden_layer_sizes": (2,)}
CLASSES = {"classes": ["a", "b"]}

# Every public name that spends, and what it takes.
SPENDERS = {
    "AutoRegressor": {},
    "AutoClassifier": CLASSES,
    "LinearRegression": {},
    "ReLURegression": {},
    "QuantileRegressor": {},
    "HuberRegressor": {},
    "LogisticRegression": CLASSES,
    "LinearSVC": CLASSES,
    "KANClassifier": CLASSES | NETWORK,
    "KANRegressor": NETWORK,
    "StandardScaler": {},
    "tune": CLASSES,
}
# These fit, and are not in the list above: on tables that are public, and with Spark, which has tests of its own.
FREE = {"compare", "Comparison"}
ELSEWHERE = {"spark.fit"}


def made(name):
    kind = quietly.LogisticRegression if name == "tune" else getattr(quietly, name)
    return kind(**PLAIN, **SPENDERS[name])


def spend(name, model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, 2))
    y = np.where(X[:, 0] > 0, "b", "a") if hasattr(model, "classes") else X[:, 0]
    return quietly.tune(model, {"ridge": [0.1]}, X, y, trials=2) if name == "tune" else model.fit(X, y)


def work(path, models):
    """How many entries the ledger has after each, in this process; an estimator that is not sent is made here."""
    counts = []
    for name, model in models.items():
        spend(name, made(name) if model is None else model)
        counts.append(len(quietly.Ledger(path).entries))
    return counts


def spawn(*task):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, task)


def fork(*task):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(work, task)


def loky(*task):
    with ProcessPoolExecutor(max_workers=1) as pool:
        return pool.submit(work, *task).result()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", [spawn, fork, loky], ids=lambda start: start.__name__)
def test_everything_that_spends_is_charged_in_worker_processes(start, tmp_path):
    before = os.environ.get("QUIETLY_LEDGER")
    with quietly.Ledger(tmp_path / "l", quietly.Budget(900, 0.1)) as ledger:
        assert os.environ["QUIETLY_LEDGER"] == ledger.path
        sent = start(ledger.path, {name: made(name) for name in SPENDERS})
        assert sent == list(range(1, len(SPENDERS) + 1))
        here = start(ledger.path, dict.fromkeys(["LinearRegression", "StandardScaler", "tune"]))
        assert here == [len(SPENDERS) + k for k in (1, 2, 3)]
    assert os.environ.get("QUIETLY_LEDGER") == before


def test_the_variable_names_a_ledger_without_a_block(tmp_path, monkeypatch):
    path, other = tmp_path / "l", tmp_path / "m"
    quietly.Ledger(path, quietly.Budget(1.2, 1e-5))
    monkeypatch.setenv("QUIETLY_LEDGER", str(path))
    spend("LinearRegression", made("LinearRegression"))
    assert len(quietly.Ledger(path).entries) == 1
    # A block comes first, and what was there before comes back.
    with quietly.Ledger(other, quietly.Budget(9, 1e-5)) as inner:
        spend("LinearRegression", made("LinearRegression"))
        assert os.environ["QUIETLY_LEDGER"] == inner.path and len(inner.entries) == 1
    assert os.environ["QUIETLY_LEDGER"] == str(path)
    spend("LinearRegression", made("LinearRegression"))
    with pytest.raises(quietly.BudgetExceededError):
        spend("LinearRegression", made("LinearRegression"))
    assert len(quietly.Ledger(path).entries) == 2
    monkeypatch.setenv("QUIETLY_LEDGER", str(tmp_path / "none"))
    with pytest.raises(quietly.QuietlyError):
        spend("LinearRegression", made("LinearRegression"))


def functions():
    """Every function and method of the package: its module, its class and its name, and the names of what it calls."""
    for path in sorted(PACKAGE.glob("*.py")):
        tree = ast.parse(path.read_text())
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        inside = [(kind.name, node) for kind in classes for node in kind.body]
        for owner, node in [*((None, node) for node in tree.body), *inside]:
            if isinstance(node, ast.FunctionDef):
                calls = [ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)]
                yield path.stem, owner, node.name, calls


def test_every_function_that_spends_is_listed():
    """Calls that take a ledger are found in the types of the core; whoever reaches one of them must be in the list, or free."""
    core = ast.parse((PACKAGE / "_quietly.pyi").read_text())
    takes = lambda node: isinstance(node, ast.FunctionDef) and any(a.annotation and "LedgerFile" in ast.unparse(a.annotation) for a in node.args.args)
    doors = {f"{kind.name}.{node.name}" for kind in core.body if isinstance(kind, ast.ClassDef) for node in kind.body if takes(node)}
    doors |= {f"_quietly.{node.name}" for node in core.body if takes(node)}
    assert doors == {"Model.fit", "Scaler.fit", "_quietly.tune"}
    found = list(functions())
    spends = {(module, owner, name) for module, owner, name, calls in found if any(call.endswith(tuple(doors)) for call in calls)}
    assert spends == {("estimators", "_Private", "_fit"), ("scaler", "StandardScaler", "fit"), ("tuning", None, "tune"), ("tuning", None, "_on_public")}
    for module, owner, name in spends - {("tuning", None, "_on_public")}:
        calls = next(calls for *place, calls in found if place == [module, owner, name])
        assert "ledger.of" in calls and "pipelines.not_covered" in calls, (module, name)
    # Callers of callers, by the names of methods: too many rather than too few.
    while True:
        names = {name for *_, name in spends} | {"fit"}
        more = {(module, owner, name) for module, owner, name, calls in found if any(call.rpartition(".")[2] in names for call in calls)}
        if more <= spends:
            break
        spends |= more
    public = {name for _, owner, name in spends if owner is None and name in quietly.__all__}
    public |= {owner for _, owner, _ in spends if owner in quietly.__all__}
    public |= {f"{module}.{name}" for module, owner, name in spends if owner is None and module == "spark" and not name.startswith("_")}
    from quietly.estimators import _Private

    kinds = {name for name in quietly.__all__ if inspect.isclass(getattr(quietly, name))}
    public |= {name for name in kinds if issubclass(getattr(quietly, name), _Private)}
    assert public <= set(SPENDERS) | FREE | ELSEWHERE and set(SPENDERS) <= public
