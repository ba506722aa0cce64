"""Every block of the guides runs, in order, as it would when pasted; the reference is what the docstrings say."""

import pathlib
import re
import subprocess
import sys

import matplotlib
import pytest

import quietly
from quietly.parameters import WORDS

matplotlib.use("agg")

ROOT = pathlib.Path(__file__).parents[2]
# The least number of blocks, so that a page cannot pass because none was found.
PAGES = {"python.md": 8, "spending.md": 5, "choosing.md": 5, "certificate.md": 6, "python-coming-from.md": 7}


@pytest.mark.parametrize("page", PAGES)
def test_guides_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / "docs" / page
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)
    assert len(blocks) >= PAGES[page]
    world: dict = {}
    for block in blocks:
        exec(compile(block, str(path), "exec"), world)
    matplotlib.pyplot.close("all")


def test_the_readme_runs_beside_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{20 + k % 60},{k % 80},{'high' if k % 60 > 30 else 'low'}\n" for k in range(5000))
    pathlib.Path("people.csv").write_text("age,hours,income\n" + rows)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert pathlib.Path("income.html").exists()
    matplotlib.pyplot.close("all")


def test_no_page_with_python_is_forgotten():
    found = {path.name for path in (ROOT / "docs").glob("*.md") if "```python\n" in path.read_text()}
    # That of clusters needs Spark, and is run by test_spark.py.
    assert found == {*PAGES, "cluster.md"}


def test_the_reference_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "python" / "api.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_reference_names_everything():
    page = (ROOT / "docs" / "api.md").read_text()
    for name in quietly.__all__:
        if not name.startswith("_"):
            assert f"`{name}" in page, name
    model = quietly.LinearRegression
    assert "* `epsilon` (float, default 1.0): The most that a fit may spend" in page
    assert all(f"{name} : " in model.__doc__ for name in model().get_params())


def test_defaults_are_as_the_words_say():
    """A default that is changed in one place only is found here."""
    kinds = [getattr(quietly, name) for name in quietly._LATER]
    estimators = [kind for kind in kinds if hasattr(kind, "get_params")]
    assert len(estimators) >= 8
    for kind in estimators:
        for parameter, default in kind().get_params().items():
            said = WORDS[parameter][0].rsplit("default ", 1)[1].strip('"')
            assert said == str(default), (kind, parameter)
