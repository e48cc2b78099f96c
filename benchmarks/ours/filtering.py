"""Tasks of fivo's bootstrap filter."""

import equinox as eqx
import jax
import jax.numpy as jnp

import fivo
from benchmarks.harness.task import Task, all_threads
from benchmarks.problems import linear_gaussian, stochastic_volatility
from fivo.models import LinearGaussian, SequenceModel, StochasticVolatility
from fivo.smc import ParticleFilter


def evidence(model: str, particles: int, steps: int, scheme: str) -> Task:
    """log p-hat."""
    problem, batch = _problem(model, steps)
    program = (
        jax.jit(lambda problem, batch, key: _log_evidence(problem, batch, key, particles, scheme))
        .lower(problem, batch, jax.random.key(0))
        .compile()
    )
    return Task(lambda index: program(problem, batch, jax.random.key(index)).block_until_ready(), all_threads())


def gradient(model: str, particles: int, steps: int, scheme: str) -> Task:
    """log p-hat and the norms of its gradient, that of covariances apart, as symmetry is treated in several ways."""
    problem, batch = _problem(model, steps)

    def run(problem: SequenceModel, batch: fivo.Batch, key: jax.Array) -> jax.Array:
        value, slope = eqx.filter_value_and_grad(_log_evidence)(problem, batch, key, particles, scheme)
        free, rest = _parts(slope)
        return jnp.stack([value, _norm(free), _norm(rest)])

    program = jax.jit(run).lower(problem, batch, jax.random.key(0)).compile()
    return Task(lambda index: program(problem, batch, jax.random.key(index)).block_until_ready(), all_threads())


def _log_evidence(problem: SequenceModel, batch: fivo.Batch, key: jax.Array, particles: int, scheme: str) -> jax.Array:
    return ParticleFilter(particles, scheme)(problem, batch, key=key).log_evidence[0]


def _problem(model: str, steps: int) -> tuple[SequenceModel, fivo.Batch]:
    if model == "linear-Gaussian":
        p, x = linear_gaussian(steps)
        problem = LinearGaussian(
            transition_matrix=jnp.asarray(p["A"], jnp.float32),
            transition_covariance=jnp.asarray(p["Q"], jnp.float32),
            emission_matrix=jnp.asarray(p["C"], jnp.float32),
            emission_covariance=jnp.asarray(p["R"], jnp.float32),
            initial_mean=jnp.asarray(p["m0"], jnp.float32),
            initial_covariance=jnp.asarray(p["P0"], jnp.float32),
        )
    else:
        q, x = stochastic_volatility(steps)
        problem = StochasticVolatility(mean=[q["mu"]], persistence=[q["phi"]], scale=[q["sigma"]])
        x = x[:, None]
    return problem, fivo.Batch(jnp.asarray(x[None], jnp.float32), jnp.full((1,), steps, jnp.int32))


def _parts(slope: SequenceModel) -> tuple[list, list]:
    if isinstance(slope, LinearGaussian):
        free = [slope.transition_matrix, slope.emission_matrix, slope.initial_mean]
        return free, [slope.transition_covariance, slope.emission_covariance, slope.initial_covariance]
    return jax.tree.leaves(slope), []


def _norm(leaves: list) -> jax.Array:
    return jnp.sqrt(sum((jnp.sum(leaf**2) for leaf in leaves), jnp.zeros(())))
