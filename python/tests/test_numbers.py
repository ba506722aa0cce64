"""The accountant and the noise, alone."""

import numpy as np
import pytest

import quietly
from quietly import accounting, noise


def test_published_numbers():
    # Balle and Wang 2018: one Gaussian of noise 1 at epsilon 1 has delta 0.12693673750664395.
    lower, upper = accounting.delta("gaussian", noise_multiplier=1.0, epsilon=1.0)
    assert lower <= 0.12693673750664395 <= upper < 0.12694
    lower, upper = accounting.epsilon("poisson", noise_multiplier=1.0, sampling_rate=0.01, steps=1000, delta=1e-5)
    assert 1.82 < lower <= upper < 1.83
    found, (_, spent) = accounting.calibrate("gaussian", epsilon=1.0, delta=1e-5, steps=10)
    assert spent <= 1.0 and accounting.epsilon("gaussian", noise_multiplier=found, steps=10, delta=1e-5)[1] <= 1.0
    curve = accounting.curve("random-allocation", noise_multiplier=2.0, steps=100)
    assert len(curve) > 5 and all(d > 0 and e >= 0 for d, e in curve)


def test_refusals():
    with pytest.raises(quietly.ParameterError, match="scheme"):
        accounting.epsilon("magic", noise_multiplier=1.0, delta=1e-5)
    with pytest.raises(quietly.ParameterError):
        accounting.epsilon("gaussian", noise_multiplier=-1.0, delta=1e-5)
    with pytest.raises(quietly.ParameterError):
        accounting.epsilon("poisson", noise_multiplier=1.0, delta=1e-5)
    with pytest.raises(TypeError, match="rat"):
        accounting.epsilon("poisson", noise_multiplier=1.0, rat=0.1, delta=1e-5)
    with pytest.raises(quietly.QuietlyError):
        noise.rounded_gaussian(-1.0, 3)


def test_draws():
    # 20 000 draws: the mean is within 5 standard errors, the variance within 5 %; the seed is fixed.
    draws = np.array(noise.rounded_gaussian(10.0, 20_000, random_state=1))
    assert abs(draws.mean()) < 5 * 10 / 20_000**0.5 and abs(draws.var() / (100 + 1 / 12) - 1) < 0.05
    assert noise.rounded_gaussian(10.0, 5, random_state=1) == draws[:5].tolist()
    assert noise.rounded_gaussian(1e6, 8) != noise.rounded_gaussian(1e6, 8)
    laplace = np.array(noise.discrete_laplace(3, 1, 20_000, random_state=1))
    assert abs(np.abs(laplace).mean() / 3 - 1) < 0.05
