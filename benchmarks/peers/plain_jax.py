"""FIVO on a VRNN as one writes it on a first day with JAX: a model of one particle, vmap, lax.scan, grad, Adam."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.harness.task import Task, all_threads
from benchmarks.problems import pianoroll

Parameters = dict[str, Any]


def step(
    batch: int, particles: int, hidden: int, steps: int, bound: str, parameters: str, learning_rate: float = 3e-4
) -> Task:
    """One optimiser step a run; gives the bound per timestep and the gradient's norm."""
    update, params, state = _update(batch, particles, steps, bound, parameters, learning_rate)

    def call(index: int) -> jax.Array:
        nonlocal params, state
        params, state, outcome = update(params, state, jax.random.key(index))
        return outcome

    jax.block_until_ready(call(0))  # compiles
    return Task(call, all_threads())


def compiled_step(batch: int, particles: int, hidden: int, steps: int, bound: str, parameters: str) -> Task:
    """The same step compiled ahead; the facts are the times of tracing and compiling."""
    update, params, state = _update(batch, particles, steps, bound, parameters, 3e-4)
    started = time.perf_counter()
    lowered = update.lower(params, state, jax.random.key(0))
    traced = time.perf_counter()
    program = lowered.compile()
    facts = {"trace": traced - started, "compile": time.perf_counter() - traced}
    return Task(lambda index: program(params, state, jax.random.key(index))[2], all_threads(), facts)


def _update(batch: int, particles: int, steps: int, bound: str, parameters: str, learning_rate: float) -> tuple:
    params, mean = read_parameters(parameters)
    optimiser = optax.adam(learning_rate)
    x = jnp.asarray(pianoroll(batch, steps))

    @jax.jit
    def update(params: Parameters, state: Any, key: jax.Array):
        loss, gradient = jax.value_and_grad(
            lambda p: -jnp.mean(log_evidence(p, mean, x, key, particles, bound == "fivo")) / steps
        )(params)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(params, updates), state, jnp.stack([-loss, optax.global_norm(gradient)])

    return update, params, optimiser.init(params)


def evaluation(batch: int, particles: int, hidden: int, steps: int, parameters: str) -> Task:
    """The bound without gradient."""
    params, mean = read_parameters(parameters)
    x = jnp.asarray(pianoroll(batch, steps))
    run = jax.jit(lambda key: jnp.mean(log_evidence(params, mean, x, key, particles, True)) / steps)
    run(jax.random.key(0)).block_until_ready()  # compiles
    return Task(lambda index: run(jax.random.key(index)).block_until_ready(), all_threads())


def read_parameters(path: str) -> tuple[Parameters, jax.Array]:
    """Trainable arrays and the training mean."""
    with np.load(path) as arrays:
        params = {name: jnp.asarray(arrays[name]) for name in arrays.files}
    return params, params.pop("mean")


def log_evidence(
    params: Parameters, mean: jax.Array, x: jax.Array, key: jax.Array, particles: int, resample: bool
) -> jax.Array:
    """log p-hat of every sequence of x [batch, time, notes]; with one particle and no resampling, the ELBO's sample."""
    keys = jax.random.split(key, x.shape[0])
    return jax.vmap(lambda x, key: one_sequence(params, mean, x, key, particles, resample))(x, keys)


def one_sequence(
    params: Parameters, mean: jax.Array, x: jax.Array, key: jax.Array, particles: int, resample: bool
) -> jax.Array:
    """The particle filter."""
    hidden = params["phi_z.output.bias"].shape[0]
    offset = jnp.log(mean / (1 - mean))
    features = mlp(params, "phi_x", x - mean)
    previous = jnp.concatenate([mlp(params, "phi_x", jnp.zeros((1, x.shape[1]))), features[:-1]])

    def particle(key: jax.Array, h: jax.Array, c: jax.Array, phi_z: jax.Array, inputs: tuple):
        x_t, phi_x, phi_x_previous = inputs
        h, c = lstm(params, jnp.concatenate([phi_x_previous, phi_z, h]), c)
        prior_mean, prior_scale = normal(mlp(params, "prior", h))
        shift, scale = normal(mlp(params, "proposal", jnp.concatenate([h, phi_x])))
        z = prior_mean + shift + scale * jax.random.normal(key, (hidden,))
        phi_z = mlp(params, "phi_z", z)
        logits = mlp(params, "emission", jnp.concatenate([phi_z, h])) + offset
        log_weight = (
            jnp.sum(x_t * logits - jax.nn.softplus(logits))
            + jnp.sum(jax.scipy.stats.norm.logpdf(z, prior_mean, prior_scale))
            - jnp.sum(jax.scipy.stats.norm.logpdf(z, prior_mean + shift, scale))
        )
        return h, c, phi_z, log_weight

    def scan_step(carry: tuple, inputs: tuple):
        h, c, phi_z, log_weights, total = carry
        key, inputs = inputs[0], inputs[1:]
        key, resampling_key = jax.random.split(key)
        h, c, phi_z, log_alpha = jax.vmap(particle, in_axes=(0, 0, 0, 0, None))(
            jax.random.split(key, particles), h, c, phi_z, inputs
        )
        log_weights = log_weights + log_alpha
        log_sum = jax.nn.logsumexp(log_weights)
        log_weights, total = log_weights - log_sum, total + log_sum
        if resample:
            weak = jnp.exp(-jax.nn.logsumexp(2 * log_weights)) <= particles / 2
            drawn = jax.random.categorical(resampling_key, log_weights, shape=(particles,))
            ancestors = jnp.where(weak, drawn, jnp.arange(particles))
            h, c, phi_z = h[ancestors], c[ancestors], phi_z[ancestors]
            log_weights = jnp.where(weak, -jnp.log(particles), log_weights)
        return (h, c, phi_z, log_weights, total), None

    zeros = jnp.zeros((particles, hidden))
    start = (zeros, zeros, zeros, jnp.full(particles, -jnp.log(particles)), 0.0)
    inputs = (jax.random.split(key, x.shape[0]), x, features, previous)
    return jax.lax.scan(scan_step, start, inputs)[0][-1]


def mlp(params: Parameters, name: str, x: jax.Array) -> jax.Array:
    """One hidden layer of ReLU units."""
    hidden = jax.nn.relu(x @ params[f"{name}.hidden.weight"] + params[f"{name}.hidden.bias"])
    return hidden @ params[f"{name}.output.weight"] + params[f"{name}.output.bias"]


def lstm(params: Parameters, inputs: jax.Array, c: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The next hidden and cell state."""
    gates = inputs @ params["lstm.weight"] + params["lstm.bias"]
    enter, candidate, forget, leave = jnp.split(gates, 4)
    c = jax.nn.sigmoid(forget + 1) * c + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
    return jax.nn.sigmoid(leave) * jnp.tanh(c), c


def normal(outputs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation."""
    mean, raw = jnp.split(outputs, 2)
    return mean, jax.nn.softplus(raw + 0.5) + 1e-4
