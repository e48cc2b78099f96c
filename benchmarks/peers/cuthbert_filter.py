"""cuthbert's bootstrap filter. Only the log-evidence leaves the program, so its history costs nothing."""

import jax
import jax.numpy as jnp
from cuthbert import filter as run_filter
from cuthbert.smc import particle_filter
from cuthbertlib.resampling import ess_decorator, systematic

from benchmarks.harness.task import Task, all_threads
from benchmarks.peers.state_space import Parameters, build, draw, problem, with_norms


def evidence(model: str, particles: int, steps: int, scheme: str) -> Task:
    """log p-hat."""
    return _task(model, particles, steps, scheme, slope=False)


def gradient(model: str, particles: int, steps: int, scheme: str) -> Task:
    """log p-hat and the norms of its gradient."""
    return _task(model, particles, steps, scheme, slope=True)


def _task(model: str, particles: int, steps: int, scheme: str, slope: bool) -> Task:
    if scheme != "systematic":
        raise ValueError(f"cuthbert with {scheme} resampling is not compared")
    p, x = problem(model, steps)

    def run(p: Parameters, key: jax.Array) -> jax.Array:
        return log_evidence(p, x, key, particles)

    program = jax.jit(with_norms(run) if slope else run).lower(p, jax.random.key(0)).compile()
    return Task(lambda index: program(p, jax.random.key(index)).block_until_ready(), all_threads())


def log_evidence(p: Parameters, x: jax.Array, key: jax.Array, particles: int) -> jax.Array:
    """The filter's estimate, resampling systematically when ESS < N/2.

    cuthbert draws before every observation, the first included: the first draw is the prior's, whatever came before.
    """
    model = build(p)
    mean, scale = model.first

    def move(key: jax.Array, z: jax.Array, inputs: tuple) -> jax.Array:
        is_first = inputs[1]
        return draw(key, jnp.where(is_first, mean, model.transition(z)), jnp.where(is_first, scale, model.scale))

    filter_ = particle_filter.build_filter(
        lambda key: jnp.zeros_like(mean),
        move,
        lambda previous, z, inputs: model.log_emission(z, inputs[0]),
        particles,
        ess_decorator(systematic.resampling, 0.5),
    )
    first, later = jax.random.split(key)
    inputs = (x, jnp.arange(len(x)) == 0)
    return run_filter(filter_, inputs, filter_.init_prepare(key=first), key=later).log_normalizing_constant[-1]
