"""A bootstrap filter as one writes it on a first day with JAX: vmap over particles, scan over time, searchsorted."""

import jax
import jax.numpy as jnp

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
        raise ValueError(f"a plain filter with {scheme} resampling is not compared")
    p, x = problem(model, steps)

    def run(p: Parameters, key: jax.Array) -> jax.Array:
        return log_evidence(p, x, key, particles)

    program = jax.jit(with_norms(run) if slope else run).lower(p, jax.random.key(0)).compile()
    return Task(lambda index: program(p, jax.random.key(index)).block_until_ready(), all_threads())


def log_evidence(p: Parameters, x: jax.Array, key: jax.Array, particles: int) -> jax.Array:
    """The filter's estimate, resampling systematically when ESS <= N/2."""
    model = build(p)

    def step(carry: tuple, inputs: tuple):
        z, log_weights, total = carry
        x_t, key = inputs
        resampling_key, key = jax.random.split(key)
        log_weights = log_weights + jax.vmap(model.log_emission, in_axes=(0, None))(z, x_t)
        log_sum = jax.nn.logsumexp(log_weights)
        log_weights = log_weights - log_sum

        def resample(z: jax.Array):
            return z[systematic(resampling_key, log_weights)], jnp.full(particles, -jnp.log(particles))

        weak = jnp.exp(-jax.nn.logsumexp(2 * log_weights)) <= particles / 2
        z, log_weights = jax.lax.cond(weak, resample, lambda z: (z, log_weights), z)
        z = jax.vmap(lambda key, z: draw(key, model.transition(z), model.scale))(jax.random.split(key, particles), z)
        return (z, log_weights, total + log_sum), None

    first_key, key = jax.random.split(key)
    z = jax.vmap(lambda key: draw(key, *model.first))(jax.random.split(first_key, particles))
    start = (z, jnp.full(particles, -jnp.log(particles)), 0.0)
    return jax.lax.scan(step, start, (x, jax.random.split(key, len(x))))[0][-1]


def systematic(key: jax.Array, log_weights: jax.Array) -> jax.Array:
    """Ancestors from one uniform draw."""
    particles = len(log_weights)
    points = (jnp.arange(particles) + jax.random.uniform(key)) / particles
    heights = jnp.cumsum(jax.lax.stop_gradient(jnp.exp(log_weights)))
    return jnp.clip(jnp.searchsorted(heights, points), 0, particles - 1)
