"""A line for people who wait; nothing for programs."""

import io
import subprocess
import sys

import numpy as np
import pytest

import quietly
from quietly import progress

X = np.random.default_rng(5).uniform(-1, 1, (500, 2))
Y = X[:, 0] / 2


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def at_once(monkeypatch):
    """Lines from the first moment on."""
    monkeypatch.setattr(progress, "FIRST", 0.0)


def slow(**wishes):
    """A network that takes far longer than the fifth of a second that lies between two lines."""
    network = {"hidden_layer_sizes": (32,), "sampler": "full-batch", "noise_correlation": "independent", "epochs": 2000, "n_jobs": 1}
    return quietly.KANRegressor(random_state=1, **network, **wishes)


def test_nothing_is_said_where_nobody_looks(at_once, monkeypatch):
    for verbose, stream in [(None, io.StringIO()), (False, Screen())]:
        monkeypatch.setattr(sys, "stderr", stream)
        slow(verbose=verbose).fit(X, Y)
        assert stream.getvalue() == ""


def test_a_terminal_is_told_and_wiped(at_once, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen())
    model = slow().fit(X, Y)
    said = sys.stderr.getvalue()
    assert "step " in said and " of 2000" in said and " s left" in said
    assert said.endswith("\r\x1b[K")
    # Telling changes nothing.
    assert (model.predict(X) == slow(verbose=False).fit(X, Y).predict(X)).all()


def test_a_file_is_told_on_request(at_once, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    slow(verbose=True).fit(X, Y)
    said = sys.stderr.getvalue()
    assert said.startswith("quietly: ") and "\x1b" not in said


def test_a_short_fit_says_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen())
    quietly.LinearRegression(random_state=1).fit(X, Y)
    assert sys.stderr.getvalue() == ""


def test_a_screen_that_fails_does_not_stop_a_fit(at_once, monkeypatch):
    class Broken(Screen):
        def write(self, text):
            raise OSError("gone")

    monkeypatch.setattr(sys, "stderr", Broken())
    slow().fit(X, Y)


def test_a_notebook_is_told_in_its_cell(at_once, monkeypatch):
    said = []

    class Handle:
        def update(self, data, raw):
            said.append(data["text/plain"])

    def display(data, raw, display_id):
        said.append(data["text/plain"])
        return Handle()

    shell = type("ZMQInteractiveShell", (), {})()
    ipython = type(sys)("IPython")
    ipython.get_ipython = lambda: shell
    drawing = type(sys)("IPython.display")
    drawing.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", drawing)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    slow().fit(X, Y)
    assert said[0].startswith("quietly: ") and said[-1] == ""
    assert sys.stderr.getvalue() == ""


def test_numbers_that_depend_on_rows_are_not_told():
    line = progress.Line(None)
    line.doing = "minimising"
    assert line.words(0, 0, line.start + 3.2) == "quietly: minimising, 3 s"
    line.doing = "step"
    assert line.words(30, 120, line.start + 3.0) == "quietly: step 30 of 120, 3 s, about 9 s left"
    line.doing = "reading"
    assert line.words(2_000_000, 8_000_000, line.start + 1.0) == "quietly: reading 2 of 8 MB, 1 s, about 3 s left"


def test_verbose_must_be_a_word_that_is_understood():
    with pytest.raises(quietly.ParameterError, match="verbose"):
        quietly.LinearRegression(verbose="yes").fit(X, Y)


def test_a_whole_program_is_quiet():
    program = (
        "import numpy as np, quietly\n"
        "X = np.random.default_rng(0).uniform(-1, 1, (500, 2))\n"
        "schema = quietly.Schema(x0=(-1, 1), x1=(-1, 1))\n"
        "quietly.LogisticRegression(random_state=0, schema=schema).fit(X, X[:, 0] > 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
