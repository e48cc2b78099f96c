"""The bootstrap filter of `particles` (NumPy and numba, double precision), collecting nothing."""

import numpy as np
import particles as library
from particles.kalman import MVLinearGauss
from particles.state_space_models import Bootstrap, StochVol

from benchmarks.harness.task import Task, all_threads
from benchmarks.problems import linear_gaussian, stochastic_volatility


def evidence(model: str, particles: int, steps: int, scheme: str) -> Task:
    """log p-hat."""
    if model == "linear-Gaussian":
        p, x = linear_gaussian(steps)
        problem = MVLinearGauss(F=p["A"], G=p["C"], covX=p["Q"], covY=p["R"], mu0=p["m0"], cov0=p["P0"])
    else:
        q, x = stochastic_volatility(steps)
        problem = StochVol(mu=q["mu"], rho=q["phi"], sigma=q["sigma"])
    data = list(x)

    def run(num_particles: int, data: list) -> float:
        bootstrap = Bootstrap(ssm=problem, data=data)
        filter_ = library.SMC(fk=bootstrap, N=num_particles, resampling=scheme, ESSrmin=0.5, collect="off")
        filter_.run()
        return float(filter_.logLt)

    def call(index: int) -> float:
        np.random.seed(index)  # noqa: NPY002 (the library draws from NumPy's global state)
        return run(particles, data)

    run(100, data[:10])  # numba compiles
    return Task(call, all_threads())
