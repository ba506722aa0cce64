"""A small table in every shape, and the command line beside it."""

import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import quietly

ROOT = pathlib.Path(__file__).parents[2]
ROWS = 3000


def table() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    age, hours = rng.uniform(-10, 110, ROWS), rng.normal(40, 20, ROWS)
    sex = rng.choice(["F", "M", "?"], ROWS, p=[0.5, 0.48, 0.02])
    score = (age - 50) / 50 + (hours - 40) / 80 + 0.3 * (sex == "M") + 0.2 * rng.normal(size=ROWS)
    age[::97] = np.nan
    kind = np.where(score > 0.4, "c", np.where(score > -0.3, "b", "a"))
    income = np.where(score > 0, "high", "low")
    return pd.DataFrame({"age": age, "hours": hours, "sex": sex, "income": income, "kind": kind, "pay": 50 + 20 * score})


SCHEMA = """
rows = 3000
unit = "person"
[columns]
age = { range = [0, 100] }
hours = { range = [0, 80], missing = 40 }
sex = { values = ["F", "M"] }
"""
TARGETS = {"income": 'values = ["low", "high"]', "kind": 'values = ["a", "b", "c"]', "pay": "range = [0, 100]"}


def schema_text(target: str) -> str:
    return SCHEMA + f"{target} = {{ {TARGETS[target]} }}\n"


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    return table()


@pytest.fixture(scope="session")
def csv(people, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("people") / "people.csv"
    people.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def command(csv):
    """`quietly fit` on the file, and the model file it wrote."""
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
    binary = shutil.which("quietly", path=str(folder))
    if binary is None:
        pytest.fail("build the command line first: cargo build -p quietly-cli")

    def fit(model: str, target: str, *flags: str) -> dict:
        schema = csv.with_name(f"{target}.schema.toml")
        schema.write_text(schema_text(target))
        output = csv.with_name("model.quietly")
        arguments = ["fit", model, csv, "--target", target, "--schema", schema, "--output", output, "--force", *flags]
        subprocess.run([binary, *map(str, arguments)], check=True, capture_output=True)
        return {"path": output, **json.loads(output.read_text())}

    return fit


@pytest.fixture
def schema():
    return lambda target: quietly.Schema.parse(schema_text(target))
