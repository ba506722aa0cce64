"""Times what people use today for the questions that `quietly-bench` answers; one JSON line each.

usage: rivals.py FOLDER [accounting|regression|convex|diffprivlib]

Best of two, unless one takes more than five seconds: the first call pays for compilation. Short questions are asked
more often. Seconds are wall-clock. Everything has two threads. FOLDER keeps the CSV file that is read.
"""
import json
import os
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[variable] = "2"

DELTA = 1e-5
POISSON = [(0.01, 1.0, 1000), (0.001, 0.8, 10_000), (0.004, 1.1, 15_000), (1e-4, 0.6, 100_000)]
ALLOCATION = [(t, s) for t in (10, 100) for s in (0.5, 1.0, 2.0, 4.0)]
ALLOCATION += [(1000, 0.5), (1000, 1.0), (10_000, 0.5)]  # (10_000, 1.0) takes the package eight minutes
CLASSES = [(1_000_000, 20), (32_561, 123)]
SHAPES = [(1_000_000, 20), (200_000, 200)]


def poisson(rate, sigma, steps):
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    accountant.compose(dp.SelfComposedDpEvent(step, steps))
    epsilon = accountant.get_epsilon(DELTA)
    return {"lower": epsilon, "upper": epsilon}


def allocation(steps, sigma):
    import PLD_accounting as pld

    upper, lower = pld.gaussian_allocation_epsilon_range(delta=DELTA, sigma=sigma, num_steps=steps)
    return {"lower": lower, "upper": upper}


def report(scheme, parameters, question, runs=2):
    seconds, total = float("inf"), 0
    for _ in range(runs):
        start = time.perf_counter()
        answer = question()
        last = time.perf_counter() - start
        seconds, total = min(seconds, last), total + last
        if last > 5 or total > 20:
            break
    row = {"scheme": scheme, "parameters": parameters, **answer, "seconds": seconds}
    print(json.dumps(row), flush=True)
    print(f"{scheme} {parameters}: {seconds:.4f} s", file=sys.stderr)


def accounting():
    for case in POISSON:
        report("poisson", case, lambda: poisson(*case))
    for case in ALLOCATION:
        report("allocation", case, lambda: allocation(*case))


def regression(folder):
    import numpy as np
    import polars as pl
    from sklearn.linear_model import LinearRegression

    for n, d in SHAPES:
        g = np.random.default_rng(7)
        x = g.uniform(-1, 1, (n, d))
        w = g.uniform(-1, 1, d)
        y = x @ w + g.uniform(-1, 1, n)

        def gradient():
            x.T @ (x @ w - y)
            return {}

        def fit():
            LinearRegression().fit(x, y)
            return {}

        report("numpy gradient", (n, d), gradient, 40)
        report("scikit-learn", (n, d), fit, 7)
        if d > 20:
            continue
        path = os.path.abspath(os.path.join(folder, f"bench-{n}-{d}.csv"))
        if not os.path.exists(path):
            columns = {f"x{j}": x[:, j] for j in range(d)} | {"y": y}
            pl.DataFrame(columns).write_csv(path + ".part")
            os.rename(path + ".part", path)

        def read():
            pl.read_csv(path)
            return {"path": path}

        report("polars", (n, d), read, 9)


def classes(n, d):
    import numpy as np

    g = np.random.default_rng(7)
    x = g.uniform(-1, 1, (n, d))
    return x, x @ g.uniform(-1, 1, d) + g.uniform(-1, 1, n) > 0


def convex():
    from sklearn.linear_model import LogisticRegression

    for shape in CLASSES:
        x, y = classes(*shape)

        def fit():
            LogisticRegression(solver="lbfgs").fit(x, y)
            return {}

        report("logistic", shape, fit, 5)


def diffprivlib():
    from diffprivlib.models import LogisticRegression

    for n, d in CLASSES:
        x, y = classes(n, d)

        def fit():
            LogisticRegression(epsilon=1.0, data_norm=d**0.5).fit(x, y)
            return {}

        report("private logistic", (n, d), fit, 3)


groups = {"accounting": accounting, "regression": lambda: regression(sys.argv[1]), "convex": convex}
for name in sys.argv[2:] or groups:
    (groups | {"diffprivlib": diffprivlib}).get(name, lambda: None)()
