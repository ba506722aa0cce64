"""A fit lets other threads work, and stops when asked to."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import quietly


def test_ctrl_c_stops_a_fit():
    X = np.random.default_rng(0).uniform(-1, 1, (20_000, 5))
    model = quietly.KANRegressor(epsilon=5.0, sampler="full-batch", noise_correlation="independent", epochs=2000, random_state=0, rows=20_000)
    # The timer runs in another thread, so it fires only if the fit has let go of the interpreter.
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, X[:, 0])
    assert time.monotonic() - started < 20
    assert not hasattr(model, "certificate_")
