"""Pictures show what the model holds, no more and no less."""

import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import quietly

matplotlib.use("agg")

RNG = np.random.default_rng(11)
X = RNG.uniform(-1, 1, (800, 3))
SCORE = X[:, 0] - X[:, 1] / 2
KINDS = np.where(SCORE > 0.4, "c", np.where(SCORE > -0.3, "b", "a"))
QUICK = {"sampler": "full-batch", "noise_correlation": "independent", "epochs": 100, "hidden_layer_sizes": (16,), "random_state": 1}


def bars(figure: Figure) -> list[float]:
    return [bar.get_width() for bar in figure.axes[0].patches]


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


def test_one_bar_for_every_weight():
    model = quietly.LinearRegression(random_state=1).fit(X, SCORE / 2)
    figure = model.plot()
    assert isinstance(figure, Figure)
    assert bars(figure) == pytest.approx(model.coef_)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["x0", "x1", "x2"]
    assert "no error bars" in figure.axes[0].get_title()
    assert not figure.axes[0].containers[0].errorbar


def test_one_bar_for_every_class():
    model = quietly.LogisticRegression(epsilon=10, random_state=1).fit(X, KINDS)
    figure = model.plot()
    assert len(bars(figure)) == model.coef_.size == 9
    assert sorted(bars(figure)) == pytest.approx(sorted(model.coef_.ravel()))
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["a", "b", "c"]


def test_bars_of_noise_are_measured_on_a_public_table():
    model = quietly.LinearRegression(epsilon=0.5).fit(X, SCORE / 2)
    figure = model.plot(public=(X, SCORE / 2), runs=3)
    assert "3 fits of a public table" in figure.axes[0].get_title()
    (container,) = [c for c in figure.axes[0].containers if getattr(c, "errorbar", None)]
    (lines,) = container.errorbar.lines[2]
    lengths = [segment[1][0] - segment[0][0] for segment in lines.get_segments()]
    assert len(lengths) == 3 and all(length > 0 for length in lengths)
    with pytest.raises(quietly.ParameterError, match="another plan"):
        model.plot(public=(X[:, :2], SCORE / 2))
    with pytest.raises(quietly.ParameterError, match="runs"):
        model.plot(public=(X, SCORE / 2), runs=1)


def test_many_features_are_cut_and_names_are_no_mathematics():
    wide = RNG.uniform(-1, 1, (300, 50))
    columns = {f"$x_{k}$": (-1, 1) for k in range(50)} | {"y": (-1, 1)}
    model = quietly.LinearRegression(schema=quietly.Schema(columns, rows=300), target="y", random_state=1)
    figure = model.fit(wide, wide[:, 0]).plot()
    assert len(bars(figure)) == 40 and "40 largest of 50" in figure.axes[0].get_title()
    figure.canvas.draw()


def test_a_network_has_a_panel_for_every_column():
    schema = quietly.Schema(x=(0, 10), sex=["F", "M"], y=(-1, 1), rows=800)
    import pandas as pd

    frame = pd.DataFrame({"x": 5 * X[:, 0] + 5, "sex": np.where(X[:, 1] > 0, "F", "M"), "y": SCORE / 2})
    model = quietly.KANRegressor(epsilon=5, schema=schema, **QUICK).fit(frame, "y")
    figure = model.plot()
    what, outputs, columns = model._model.curves()
    assert what == "prediction of y" and outputs == []
    assert sorted(axis.get_title() for axis in figure.axes) == ["sex", "x"]
    by_name = {axis.get_title(): axis for axis in figure.axes}
    assert by_name["x"].lines[-1].get_xdata()[[0, -1]] == pytest.approx([0, 10])
    mean = next(column["means"][0] for column in columns if column["name"] == "x")
    assert by_name["x"].lines[-1].get_ydata() == pytest.approx(mean)
    # The mean is the mean of what the network really says.
    assert min(mean) >= -1.5 and max(mean) <= 1.5 and mean[-1] > mean[0]


def test_classes_of_a_network_have_a_line_each():
    model = quietly.KANClassifier(epsilon=5, **QUICK).fit(X, KINDS)
    figure = model.plot()
    assert [len(axis.lines) for axis in figure.axes] == [3, 3, 3]
    for lines in (axis.lines for axis in figure.axes):
        assert sum(line.get_ydata() for line in lines) == pytest.approx(np.ones(41))


def test_without_matplotlib_the_message_says_what_to_do(monkeypatch):
    model = quietly.LinearRegression(random_state=1).fit(X, SCORE / 2)
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(quietly.PackageError, match="pip install matplotlib") as refused:
        model.plot()
    assert isinstance(refused.value, ImportError)


def test_error_against_epsilon():
    model = quietly.LogisticRegression(classes=["a", "b", "c"])
    found = quietly.compare(model, X, KINDS, epsilons=[0.1, 100], repeats=3, random_state=1)
    assert [row["epsilon"] for row in found.rows] == [0.1, 100]
    noisy, clear = found.rows
    assert noisy["error"] > clear["error"] >= 0 and clear["error"] < found.without_noise["LogisticRegression"] + 0.1
    assert clear["score"] == pytest.approx(1 - clear["error"])
    assert found.spent == pytest.approx(3 * (noisy["spent"] + clear["spent"]), rel=1e-6)
    assert "NOT private" in str(found)
    again = quietly.compare(model, X, KINDS, epsilons=[0.1, 100], repeats=3, random_state=1)
    assert again == found
    figure = found.plot()
    assert isinstance(figure, Figure) and figure.axes[0].get_xscale() == "log"
    # The estimator itself is as it was.
    assert model.get_params()["epsilon"] == 1.0 and not hasattr(model, "coef_")


def test_several_regressions_beside_each_other():
    both = {"batch": quietly.LinearRegression(), "pass": quietly.LinearRegression(method="one-pass")}
    found = quietly.compare(both, X, SCORE / 2, epsilons=[1], repeats=1)
    assert [row["name"] for row in found.rows] == ["batch", "pass"]
    assert found.measure == "root mean squared error" and found.without_noise["batch"] < 1e-6
    assert len(found.plot().axes[0].get_legend().get_texts()) == 4


@pytest.mark.parametrize(
    "wishes",
    [{"epsilons": []}, {"epsilons": [float("inf")]}, {"repeats": 0}, {"random_state": -1}, {"estimator": "linear"}, {"estimator": {}}],
    ids=str,
)
def test_what_cannot_be_compared_is_refused(wishes):
    wishes = {"estimator": quietly.LinearRegression(), **wishes}
    with pytest.raises(quietly.ParameterError):
        quietly.compare(wishes.pop("estimator"), X, SCORE, **wishes)
    with pytest.raises(quietly.DataError):
        quietly.compare(quietly.LinearRegression(), "people.csv", "y")
