"""The speed targets of the Python package: ratios of one run, each with its target.

usage: python.py --rival PYTHON [--rows 1000000] [--json]

PYTHON is an interpreter that has diffprivlib, which does not start beside newer releases of scikit-learn. Everything has two
threads. Ours and scikit-learn's fits take turns in one process, so that a busy machine slows both; times are medians. The first fit of each is
slower and is told apart: ours searches for its noise then, and remembers it; theirs waits for memory and for threads.
"""
import argparse
import json
import os
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "2"

import numpy as np

WIDTH = 20
# What the reader may hold of a table at one time: quietly-data's `AHEAD`, in MB.
BLOCK = 24


def table(rows):
    g = np.random.default_rng(7)
    x = g.uniform(-1, 1, (rows, WIDTH))
    y = x @ g.uniform(-1, 1, WIDTH) + g.uniform(-1, 1, rows)
    return x, y, (y > 0).astype(np.int64)


def turns(fits, times):
    """The median seconds of each fit, which take turns, and the seconds of the first."""
    seconds = {name: [] for name in fits}
    for _ in range(times):
        for name, fit in fits.items():
            start = time.perf_counter()
            fit()
            seconds[name].append(time.perf_counter() - start)
    return {name: (float(np.median(all)), all[0]) for name, all in seconds.items()}


def fits(rows):
    import warnings

    import sklearn.linear_model as sk

    import quietly

    # Features lie within [-1, 1], as is taken without a schema.
    warnings.simplefilter("ignore")
    x, y, label = table(rows)
    linear = {"rows": rows, "target_range": (-8, 8)}
    return {
        "linear": lambda: quietly.LinearRegression(**linear).fit(x, y),
        "one-pass": lambda: quietly.LinearRegression(method="one-pass", **linear).fit(x, y),
        "scikit-learn linear": lambda: sk.LinearRegression().fit(x, y),
        "logistic": lambda: quietly.LogisticRegression(rows=rows, classes=[0, 1]).fit(x, label),
        "scikit-learn logistic": lambda: sk.LogisticRegression(solver="lbfgs").fit(x, label),
    }


def diffprivlib(rows):
    import warnings

    import diffprivlib.models as dp

    warnings.simplefilter("ignore")
    x, y, label = table(rows)
    bounds = (-np.ones(WIDTH), np.ones(WIDTH))
    fits = {
        "diffprivlib linear": lambda: dp.LinearRegression(epsilon=1.0, bounds_X=bounds, bounds_y=(-8, 8)).fit(x, y),
        "diffprivlib logistic": lambda: dp.LogisticRegression(epsilon=1.0, data_norm=WIDTH**0.5).fit(x, label),
    }
    print(json.dumps(turns(fits, 3)))


def overhead(rows):
    """Milliseconds of a fit outside the core: all that Python does before and after the one call."""
    import quietly
    from quietly import estimators

    core = estimators.Model
    inside = []

    class Timed:
        def fit(*wishes):
            start = time.perf_counter()
            model = core.fit(*wishes)
            inside.append(time.perf_counter() - start)
            return model

    x, y, label = table(rows)
    worst = 0.0
    estimators.Model = Timed
    for fit in (
        lambda: quietly.LinearRegression(rows=rows, method="one-pass", target_range=(-8, 8)).fit(x, y),
        lambda: quietly.LogisticRegression(rows=rows, classes=[0, 1]).fit(x, label),
    ):
        outside = []
        for _ in range(15):
            start = time.perf_counter()
            fit()
            outside.append(time.perf_counter() - start - inside[-1])
        worst = max(worst, float(np.median(outside)))
    estimators.Model = core
    return 1000 * worst


def imported(before, what):
    """Milliseconds to import one thing after others, in a process of its own: the best of five."""
    code = f"import {before}\nimport time; t = time.perf_counter()\n{what}\nprint(time.perf_counter() - t)"
    run = lambda: float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    return 1000 * min(run() for _ in range(5))


def peak(rows, order, method):
    """Megabytes that a fit needs at its peak beside the table, in a process of its own."""
    code = f"""
import numpy as np, quietly
g = np.random.default_rng(7)
make = lambda n: np.asarray(g.uniform(-1, 1, (n, {WIDTH})), order={order!r})
quietly.LinearRegression(method={method!r}, rows=2000).fit(make(2000), np.zeros(2000))
x = np.empty(({rows}, {WIDTH}), order={order!r})
for k in range(0, {rows}, 1000): x[k:k + 1000] = make(1000)
y = np.zeros({rows})
# Not ru_maxrss: a child starts with its parent's.
peak = lambda: int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024
before = peak()
quietly.LinearRegression(method={method!r}, rows={rows}).fit(x, y)
print(peak() - before)
"""
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def measure(rows, rival):
    here = os.path.abspath(__file__)
    said = subprocess.run([rival, here, "--be-rival", "--rows", str(rows)], capture_output=True, text=True, check=True)
    all = fits(rows)
    s = turns({n: f for n, f in all.items() if "logistic" not in n}, 5) | turns({n: f for n, f in all.items() if "logistic" in n}, 3)
    s |= json.loads(said.stdout)
    lines = []
    for ours, target in (("linear", 2.0), ("one-pass", 0.1), ("logistic", 1.0)):
        kind = "logistic" if ours == "logistic" else "linear"
        for other in ("scikit-learn", "diffprivlib"):
            (mine, first), (theirs, their_first) = s[ours], s[f"{other} {kind}"]
            note = f"{mine:.3f} s / {theirs:.3f} s; the first {first:.3f} s / {their_first:.3f} s"
            lines.append((f"{ours} fit / {other}", mine / theirs, target, "x", note))
    lines.append(("Python around a fit, 10 rows", overhead(10), 2.0, "ms", ""))
    lines.append((f"Python around a fit, {rows} rows", overhead(rows), 2.0, "ms", ""))
    lines.append(("import quietly, beside numpy", imported("numpy", "import quietly"), 150.0, "ms", ""))
    estimator = imported("numpy, sklearn.base, sklearn.utils.multiclass", "import quietly; quietly.LinearRegression")
    lines.append(("import an estimator, beside scikit-learn", estimator, 150.0, "ms", ""))
    for order, method in (("C", "auto"), ("F", "auto"), ("C", "one-pass"), ("F", "one-pass")):
        extra = peak(rows, order, method)
        name = f"peak memory / one block, {method}, {order} order"
        lines.append((name, extra / BLOCK, 1.2, "x", f"{extra:.0f} MB / {BLOCK} MB; the table has {rows * 8 * WIDTH >> 20} MB"))
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rival")
    parser.add_argument("--be-rival", action="store_true")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    if a.be_rival:
        return diffprivlib(a.rows)
    lines = measure(a.rows, a.rival)
    if a.json:
        keys = ("what", "value", "target", "unit", "from")
        print(json.dumps([dict(zip(keys, line)) | {"ok": line[1] <= line[2]} for line in lines], indent=2))
        return None
    print(f"{'what':42} {'value':>10} {'at most':>10}")
    for what, value, target, unit, note in lines:
        word = "ok" if value <= target else "SHORT"
        print(f"{what:42} {value:7.3g} {unit:2} {target:7.3g} {unit:2} {word:6} {note}")


main()
