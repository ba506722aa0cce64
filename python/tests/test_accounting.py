"""The accountant's numbers are those of the command line, for every scheme it has."""

import doctest
import json
import os
import pathlib
import shutil
import subprocess

import pytest

import quietly
from quietly import accounting, errors

ROOT = pathlib.Path(__file__).parents[2]
SCHEMES = [
    ("gaussian", {"noise_multiplier": 3.0, "steps": 7}),
    ("laplace", {"scale": 4.0, "steps": 3}),
    ("exponential", {"epsilon_each": 0.2, "steps": 5}),
    ("poisson", {"noise_multiplier": 1.5, "sampling_rate": 0.02, "steps": 200}),
    ("fixed-size", {"noise_multiplier": 2.0, "records": 1000, "batch": 50, "steps": 20}),
    ("random-allocation", {"noise_multiplier": 2.0, "steps": 50, "select": 2, "epochs": 2}),
    ("shuffle", {"noise_multiplier": 4.0, "steps": 10, "epochs": 3}),
    ("tree", {"noise_multiplier": 8.0, "steps": 16, "epochs": 2}),
    ("correlated", {"noise_multiplier": 5.0, "steps": 20, "lambda_": 0.5, "full": True}),
    ("correlated", {"noise_multiplier": 3.0, "steps": 20, "bands": [1.0, 0.5, 0.25], "period": 5}),
    ("correlated", {"noise_multiplier": 3.0, "steps": 20, "lambda_": 0.4, "separation": 4, "participations": 3}),
    ("correlated", {"noise_multiplier": 3.0, "steps": 12, "bands": [1.0, 0.5], "period": 4, "sampling_rate": 0.1}),
    ("correlated", {"noise_multiplier": 3.0, "steps": 12, "lambda_": 0.3, "bins": 4}),
    ("correlated", {"noise_multiplier": 6.0, "steps": 12, "lambda_": 0.3, "sampling_rate": 0.1}),
    ("correlated", {"noise_multiplier": 6.0, "steps": 8, "lambda_": 0.3, "records": 1000, "batch": 50}),
]


def typed(verb: str, scheme: str, flags: dict, *more: str) -> dict:
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
    words = [str(shutil.which("quietly", path=str(folder))), verb, scheme]
    for name, value in flags.items():
        words.append("--" + name.rstrip("_").replace("_", "-"))
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    done = subprocess.run([*words, *more, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("scheme, flags", SCHEMES, ids=lambda x: x if isinstance(x, str) else "-".join(x))
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_epsilon_and_delta_are_those_of_the_command_line(scheme, flags, neighbours):
    try:
        mine = accounting.epsilon(scheme, delta=1e-5, neighbours=neighbours, **flags)
    except errors.UnsupportedError:
        with pytest.raises(AssertionError, match="A02"):
            typed("account", scheme, flags, "--delta", "1e-5", "--neighbours", neighbours)
        return
    said = typed("account", scheme, flags, "--delta", "1e-5", "--neighbours", neighbours)
    assert mine == (said["epsilon"]["lower"], said["epsilon"]["upper"])
    said = typed("account", scheme, flags, "--epsilon", "1.5", "--neighbours", neighbours)
    mine = accounting.delta(scheme, epsilon=1.5, neighbours=neighbours, **flags)
    assert mine == (said["delta"]["lower"], said["delta"]["upper"])
    curve = accounting.curve(scheme, neighbours=neighbours, **flags)
    assert len(curve) > 5 and all(0 < d < 1 and e >= 0 for d, e in curve)


@pytest.mark.parametrize("scheme, flags", SCHEMES[:8] + SCHEMES[9:10], ids=lambda x: x if isinstance(x, str) else "-".join(x))
def test_calibration_is_that_of_the_command_line(scheme, flags):
    counts = {name: value for name, value in flags.items() if name not in ("noise_multiplier", "scale", "epsilon_each")}
    said = typed("calibrate", scheme, counts, "--epsilon", "2", "--delta", "1e-5")
    setting, (_, upper) = accounting.calibrate(scheme, epsilon=2.0, delta=1e-5, **counts)
    neat = said.get("noise_multiplier") or said.get("epsilon_each")
    # The command line rounds to five digits, on the safe side.
    assert upper <= 2.0 and abs(setting / neat - 1) < 2e-4
    dial = {"laplace": "scale", "exponential": "epsilon_each"}.get(scheme, "noise_multiplier")
    assert accounting.epsilon(scheme, delta=1e-5, **counts, **{dial: setting})[1] <= 2.0


def test_runs_add_up():
    one = accounting.epsilon("gaussian", noise_multiplier=5.0, delta=1e-5)
    two = accounting.epsilon([{"scheme": "gaussian", "noise_multiplier": 5.0}] * 2, delta=1e-5)
    assert two == pytest.approx(accounting.epsilon("gaussian", noise_multiplier=5.0, steps=2, delta=1e-5), rel=1e-6)
    assert two[0] > one[1]
    mixed = [{"scheme": "gaussian", "noise_multiplier": 5.0}, {"scheme": "approximate-dp", "epsilon_each": 0.5}]
    assert one[1] < accounting.epsilon(mixed, delta=1e-5)[1] <= one[1] + 0.5 + 1e-9
    assert accounting.epsilon("objective", noise_multiplier=20.0, smoothness=0.1, derivative="logistic", delta=1e-5)[1] < 1.0


@pytest.mark.parametrize(
    "scheme, flags",
    [
        ("gaussian", {"noise_multiplier": 1.0, "sampling_rate": 0.5}),
        ("gaussian", {}),
        ("poisson", {"noise_multiplier": 1.0}),
        ("poisson", {"noise_multiplier": "much", "sampling_rate": 0.5}),
        ("correlated", {"noise_multiplier": 1.0, "steps": 3, "full": True}),
        ("correlated", {"noise_multiplier": 1.0, "steps": 3, "lambda_": 0.5, "bands": [1.0], "full": True}),
        ("correlated", {"noise_multiplier": 1.0, "steps": 3, "lambda_": 0.5}),
        ("correlated", {"noise_multiplier": 1.0, "steps": 3, "lambda_": 0.5, "full": True, "sampling_rate": 0.5}),
        ("correlated", {"noise_multiplier": 1.0, "steps": 3, "lambda_": 0.5, "records": 10}),
        ("objective", {"noise_multiplier": 1.0, "smoothness": 0.1, "derivative": "steep"}),
        ([], {}),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(scheme, flags):
    with pytest.raises(quietly.ParameterError):
        accounting.epsilon(scheme, delta=1e-5, **flags)


def test_a_row_takes_part_in_one_way():
    with pytest.raises(quietly.ParameterError, match="full=True, sampling_rate, bins, period .alone or with sampling_rate., separation"):
        accounting.epsilon("correlated", noise_multiplier=1.0, steps=3, lambda_=0.5, bins=3, period=3, delta=1e-5)


def test_approximate_dp_has_no_noise_to_calibrate():
    with pytest.raises(quietly.ParameterError, match="approximate-dp has no noise to calibrate: ask for its epsilon instead"):
        accounting.calibrate("approximate-dp", epsilon_each=0.5, epsilon=1.0, delta=1e-5)


def test_the_examples_of_the_docs():
    from quietly import noise

    for module in (accounting, noise, quietly):
        failed, tried = doctest.testmod(module)
        assert failed == 0 and tried >= 2
