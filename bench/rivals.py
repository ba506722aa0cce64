"""Times what people use today for the questions that `quietly-bench` answers; one JSON line each.

Best of two, unless one takes more than five seconds: the first call pays for compilation. Seconds are wall-clock.
"""
import json
import sys
import time

import dp_accounting as dp
import PLD_accounting as pld
from dp_accounting.pld import PLDAccountant

DELTA = 1e-5
POISSON = [(0.01, 1.0, 1000), (0.001, 0.8, 10_000), (0.004, 1.1, 15_000), (1e-4, 0.6, 100_000)]
ALLOCATION = [(t, s) for t in (10, 100) for s in (0.5, 1.0, 2.0, 4.0)]
ALLOCATION += [(1000, 0.5), (1000, 1.0), (10_000, 0.5)]  # (10_000, 1.0) takes the package eight minutes


def poisson(rate, sigma, steps):
    accountant = PLDAccountant()
    step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma))
    accountant.compose(dp.SelfComposedDpEvent(step, steps))
    epsilon = accountant.get_epsilon(DELTA)
    return epsilon, epsilon


def allocation(steps, sigma):
    upper, lower = pld.gaussian_allocation_epsilon_range(delta=DELTA, sigma=sigma, num_steps=steps)
    return lower, upper


def report(scheme, parameters, question):
    seconds = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        lower, upper = question(*parameters)
        seconds = min(seconds, time.perf_counter() - start)
        if seconds > 5:
            break
    row = {"scheme": scheme, "parameters": parameters, "lower": lower, "upper": upper, "seconds": seconds}
    print(json.dumps(row), flush=True)
    print(f"{scheme} {parameters}: {seconds:.2f} s", file=sys.stderr)


for case in POISSON:
    report("poisson", case, poisson)
for case in ALLOCATION:
    report("allocation", case, allocation)
