"""The types that are promised are those that are there."""

import pathlib
import subprocess
import sys

import quietly

ROOT = pathlib.Path(__file__).parents[2]


def run(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_is_content():
    run("mypy")


def test_the_stubs_are_those_of_the_core():
    run("mypy.stubtest", "quietly._quietly", "--mypy-config-file", "pyproject.toml")


def test_the_package_says_that_it_is_typed():
    assert (pathlib.Path(quietly.__file__).parent / "py.typed").exists()
