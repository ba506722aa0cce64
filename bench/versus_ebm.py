"""Ours beside DP-EBM, the private boosting of interpret-core: the same splits, ranges, epsilon and delta.

usage: versus_ebm.py --quietly PROGRAM --rival PYTHON [--data DIR] [--seeds 3] [--tables a,b] [--json]

PYTHON is an interpreter that has interpret-core (make versus-ebm makes one). Tables are those of raw_tables.py, as they are: DP-EBM gets
the ranges of the schema as its privacy bounds and the range of the target, and names of categories; missing numbers become the middle
of their range for it. Both have add-remove and delta 1e-5, and no parameter is tuned on either side. R2 for numbers, where more is better, and log
loss for two classes, where less is; medians over splits.
"""
import argparse
import json
import subprocess
import sys
import tempfile

import numpy as np

EPSILONS = [0.5, 1.0, 3.0]

# Runs under PYTHON: fits one split at one epsilon, and prints the score.
RIVAL = """
import json, sys, warnings
import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
warnings.simplefilter("ignore")
for line in sys.stdin:
    task = json.loads(line)
    data = np.load(task["path"], allow_pickle=True)
    x, y, xt, yt = (data[name] for name in ("x", "y", "xt", "yt"))
    bounds = {int(k): tuple(v) for k, v in task["bounds"].items()}
    shared = dict(epsilon=task["epsilon"], delta=task["delta"], feature_types=task["types"], privacy_bounds=bounds, random_state=task["seed"])
    if task["classes"]:
        model = DPExplainableBoostingClassifier(**shared).fit(x, y)
        p = model.predict_proba(xt)[np.arange(len(yt)), np.searchsorted(model.classes_, yt)]
        score = float(-np.mean(np.log(np.maximum(p, 1e-15))))
    else:
        low, high = task["range"]
        model = DPExplainableBoostingRegressor(privacy_target_min=low, privacy_target_max=high, **shared).fit(x, y)
        score = float(1 - np.mean((model.predict(xt) - yt) ** 2) / np.var(yt))
    print(json.dumps(score), flush=True)
"""


class Rival:
    def __init__(self, python):
        self.run = subprocess.Popen([python, "-c", RIVAL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, table, train, test, path):
        def cells(rows):
            columns = []
            for name in table.features:
                values = table.columns[name][rows]
                if table.is_number(name):
                    values = np.where(np.isnan(values), sum(table.range(name)) / 2, values).astype(object)
                else:
                    values = np.array(["missing" if x is None else x for x in values], dtype=object)
                columns.append(values)
            return np.column_stack(columns)

        np.savez(path, x=cells(train), y=table.labels(train), xt=cells(test), yt=table.labels(test))
        number = [table.is_number(name) for name in table.features]
        self.task = {
            "path": path,
            "delta": 1e-5,
            "classes": table.classes,
            "types": ["continuous" if n else "nominal" for n in number],
            "bounds": {k: table.range(name) for k, name in enumerate(table.features) if number[k]},
            "range": None if table.classes else table.range(table.target),
        }

    def score(self, epsilon, seed):
        self.run.stdin.write(json.dumps({**self.task, "epsilon": epsilon, "seed": seed}) + "\n")
        self.run.stdin.flush()
        line = self.run.stdout.readline()
        return json.loads(line) if line else sys.exit("DP-EBM stopped: see what it said above")


def main():
    import raw_tables

    # Tables of more than two classes are left out: DP-EBM has two.
    names = [*raw_tables.REGRESSION, *(name for name in raw_tables.CLASSES if name != "digits")]
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quietly", required=True)
    arguments.add_argument("--rival", required=True)
    arguments.add_argument("--data")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--tables", default=",".join(names))
    arguments.add_argument("--family", default="auto")
    arguments.add_argument("--json", action="store_true")
    a = arguments.parse_args()
    rival, ahead, cells = Rival(a.rival), 0, 0
    print(f"{'table (rows, columns)':<32}{'eps':>5}{'ours':>9}{'DP-EBM':>9}")
    for name in a.tables.split(","):
        table = raw_tables.load(name, a.data)
        if table is None:
            continue
        found = {e: ([], []) for e in EPSILONS}
        with tempfile.TemporaryDirectory() as folder:
            quietly = raw_tables.Quietly(a.quietly, folder)
            for seed in range(a.seeds):
                train, test = table.split(seed)
                quietly.begin(table, train, test)
                rival.begin(table, train, test, quietly.path("rival.npz"))
                for e in EPSILONS:
                    scores = quietly.score(table, a.family, e), rival.score(e, seed)
                    for kept, score in zip(found[e], scores):
                        kept.append(score)
                    if a.json:
                        print(json.dumps({"table": name, "seed": seed, "epsilon": e, "ours": scores[0], "ebm": scores[1]}), flush=True)
        for e in EPSILONS:
            ours, theirs = (float(np.median(scores)) for scores in found[e])
            better = ours < theirs if table.classes else ours > theirs
            ahead, cells = ahead + better, cells + 1
            label = f"{name} ({len(train)}, {len(table.features)})"
            print(f"{label:<32}{e:>5}{ours:>9.3f}{theirs:>9.3f}  {'ahead' if better else 'behind'}", flush=True)
    print(f"ahead of DP-EBM in {ahead} of {cells} cells")


if __name__ == "__main__":
    main()
