"""Our linear and logistic regression beside diffprivlib's: the same splits, epsilons and declared bounds.

usage: versus_diffprivlib.py --data DIR --rival PYTHON [--seeds 5] [--tables a,b] [--json]

PYTHON is an interpreter that has diffprivlib, which does not start beside newer releases of scikit-learn: this file runs in both,
and both cut the tables in the same way. 80/20 splits by seed. Numbers are standardised with the training part's statistics
(public here, for both) and cut to [-3, 3]; targets of regressions are, too, and both libraries are told so. a9a is 0/1 as it is. For
logistic regression diffprivlib wants a bound on the norm of a row: rows get a constant, are divided by the square root of the
number of columns (of a9a, of its 14 groups and the constant) and cut to norm 1, which suits it best. Its linear regression goes without
an intercept, which standardised tables do not need: that saves it a part of its budget. It promises pure epsilon; ours delta 1e-5. No
parameter is tuned, on either side.
"""
import argparse
import gzip
import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

EPSILONS = [0.5, 1.0, 2.0, 4.0]
DELTA = 1e-5
REGRESSION = ["california-housing", "gas-turbine-nox", "gas-turbine-tey", "wine-quality-white"]
CLASSIFICATION = {"a9a": 123, "ijcnn1": 22}


def csv(path, delimiter=","):
    with open(path) as file:
        names = [name.strip().strip('"') for name in file.readline().split(delimiter)]
        return names, np.loadtxt(file, delimiter=delimiter)


def column(names, rows, target, drop=()):
    keep = [k for k, name in enumerate(names) if name != target and name not in drop]
    return rows[:, keep], rows[:, names.index(target)]


def libsvm(folder, name):
    path = folder / name / f"{name}.gz"
    lines = (gzip.open(path, "rt") if path.exists() else open(folder / name / name)).read().splitlines()
    x, y = np.zeros((len(lines), CLASSIFICATION[name])), np.empty(len(lines), dtype=int)
    for k, line in enumerate(lines):
        label, *pairs = line.split()
        y[k] = float(label) > 0
        for pair in pairs:
            index, value = pair.split(":")
            x[k, int(index) - 1] = float(value)
    return x, y


def load(folder, name):
    if name in CLASSIFICATION:
        return libsvm(folder, name)
    if name == "california-housing":
        return column(*csv(folder / name / "california_housing.csv"), "MedHouseVal")
    if name == "wine-quality-white":
        return column(*csv(folder / name / "winequality-white.csv", ";"), "quality")
    years = [csv(folder / "gas-turbine" / f"gt_{year}.csv") for year in range(2011, 2016)]
    names, rows = years[0][0], np.vstack([rows for _, rows in years])
    return column(names, rows, "NOX", ["CO"]) if name.endswith("nox") else column(names, rows, "TEY", ["CO", "NOX"])


def split(name, x, y, seed):
    order = np.random.default_rng(1000 + seed).permutation(len(y))
    train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    if name != "a9a":
        mean, spread = x[train].mean(0), x[train].std(0)
        x = np.clip((x - mean) / np.where(spread > 0, spread, 1.0), -3, 3)
    if name not in CLASSIFICATION:
        y = (y - y[train].mean()) / y[train].std()
    return x[train], y[train], x[test], y[test]


def r2(y, said):
    return 1 - np.mean((said - y) ** 2) / np.var(y)


def theirs(name, x, y, xt, yt, epsilon, seed):
    import diffprivlib.models as dp

    width = x.shape[1]
    if name not in CLASSIFICATION:
        bounds = (-3 * np.ones(width), 3 * np.ones(width))
        model = dp.LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=(-3, 3), fit_intercept=False, random_state=seed)
        return r2(yt, model.fit(x, np.clip(y, -3, 3)).predict(xt).ravel())
    radius = math.sqrt(15) if name == "a9a" else math.sqrt(width + 1)

    def rows(x):
        x = np.hstack([x, np.ones((len(x), 1))]) / radius
        return x / np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]

    model = dp.LogisticRegression(epsilon=epsilon, data_norm=1.0, fit_intercept=False, max_iter=1000, random_state=seed)
    return np.mean(model.fit(rows(x), y).predict(rows(xt)) == yt)


def ours(name, x, y, xt, yt, epsilon, seed):
    import quietly

    rules = {f"x{k}": (0, 1) if name == "a9a" else (-3, 3) for k in range(x.shape[1])}
    rules["y"] = [0, 1] if name in CLASSIFICATION else (-3, 3)
    kind = quietly.LogisticRegression if name in CLASSIFICATION else quietly.LinearRegression
    schema = quietly.Schema(rules, rows=len(y))
    model = kind(epsilon=epsilon, delta=DELTA, schema=schema, target="y", random_state=seed).fit(x, y)
    return np.mean(model.predict(xt) == yt) if name in CLASSIFICATION else r2(yt, model.predict(xt))


def plain(name, x, y, xt, yt):
    from sklearn.linear_model import LinearRegression, LogisticRegression

    if name in CLASSIFICATION:
        return LogisticRegression(C=1e4, max_iter=2000).fit(x, y).score(xt, yt)
    return LinearRegression().fit(x, y).score(xt, yt)


def run(a, fit):
    """One JSON line for every table, epsilon and seed."""
    for name in a.tables.split(","):
        try:
            table = load(a.data, name)
        except FileNotFoundError:
            print(f"{name}: left out, it is not in {a.data}", file=sys.stderr)
            continue
        for seed in range(a.seeds):
            parts = split(name, *table, seed)
            if fit is ours:
                yield {"table": name, "who": "without privacy", "seed": seed, "score": float(plain(name, *parts))}
            for epsilon in EPSILONS:
                score = float(fit(name, *parts, epsilon, seed))
                yield {"table": name, "who": fit.__name__, "epsilon": epsilon, "seed": seed, "score": score}


def show(lines):
    scores = {}
    for line in lines:
        scores.setdefault((line["table"], line.get("epsilon"), line["who"]), []).append(line["score"])

    def cell(*key):
        all = np.array(scores.get(key, [np.nan]))
        error = all.std(ddof=1) / math.sqrt(len(all)) if len(all) > 1 else 0.0
        # A private fit may miss by miles: R² has no lower end, and one split can be the whole mean.
        far = f"{all.mean():.2g} ± {error:.2g} (median {np.median(all):.2g})"
        return f"{all.mean():.4f} ± {error:.4f}" if all.mean() > -10 else far

    print("| table | score | epsilon | quietly | diffprivlib | without privacy |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in dict.fromkeys(line["table"] for line in lines):
        what = "accuracy" if name in CLASSIFICATION else "R²"
        for epsilon in EPSILONS:
            three = cell(name, epsilon, "ours"), cell(name, epsilon, "theirs"), cell(name, None, "without privacy")
            print(f"| {name} | {what} | {epsilon:g} | {' | '.join(three)} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--rival")
    parser.add_argument("--be-rival", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", default=",".join([*REGRESSION, *CLASSIFICATION]))
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    if a.be_rival:
        for line in run(a, theirs):
            print(json.dumps(line), flush=True)
        return
    words = [a.rival, __file__, "--be-rival", "--data", a.data, "--seeds", a.seeds, "--tables", a.tables]
    rival = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
    lines = list(run(a, ours))
    lines += [json.loads(line) for line in rival.stdout]
    if rival.wait():
        sys.exit("diffprivlib failed")
    if a.json:
        for line in lines:
            print(json.dumps(line))
    else:
        print(f"mean ± standard error over {a.seeds} splits; ours at delta {DELTA:g}, diffprivlib's is pure; add or remove one row\n")
        show(lines)


main()
