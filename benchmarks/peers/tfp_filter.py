"""TensorFlow Probability's particle filter on TensorFlow, as a graph or compiled by XLA; it keeps no history."""

import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
import tensorflow_probability as tfp

from benchmarks.harness.task import Task, all_threads
from benchmarks.problems import linear_gaussian, stochastic_volatility

tfd, mcmc = tfp.distributions, tfp.experimental.mcmc


def evidence(model: str, particles: int, steps: int, scheme: str, xla: bool) -> Task:
    """log p-hat."""
    arguments = _linear_gaussian(steps) if model == "linear-Gaussian" else _stochastic_volatility(steps)

    @tf.function(jit_compile=xla, autograph=False, input_signature=[tf.TensorSpec([2], tf.int32)])
    def run(seed: tf.Tensor) -> tf.Tensor:
        increments = mcmc.particle_filter(
            **arguments,
            num_particles=particles,
            resample_fn=getattr(mcmc, f"resample_{scheme}"),
            resample_criterion_fn=lambda state, dim: mcmc.ess_below_threshold(state, dim, threshold=0.5),
            unbiased_gradients=False,
            trace_fn=lambda state, results: results.incremental_log_marginal_likelihood,
            seed=seed,
        )
        return tf.reduce_sum(increments)

    run.get_concrete_function()
    if xla:
        run.experimental_get_compiler_ir(tf.constant([0, 1]))(stage="optimized_hlo")
    return Task(lambda index: run(tf.constant([index, 1])).numpy(), all_threads())


def _linear_gaussian(steps: int) -> dict[str, Any]:
    values, x = linear_gaussian(steps)
    p = {name: tf.constant(value, tf.float32) for name, value in values.items()}
    transition, observation = tf.linalg.cholesky(p["Q"]), tf.linalg.cholesky(p["R"])
    return {
        "observations": tf.constant(x, tf.float32),
        "initial_state_prior": tfd.MultivariateNormalTriL(p["m0"], tf.linalg.cholesky(p["P0"])),
        "transition_fn": lambda step, z: tfd.MultivariateNormalTriL(z @ tf.transpose(p["A"]), transition),
        "observation_fn": lambda step, z: tfd.MultivariateNormalTriL(z @ tf.transpose(p["C"]), observation),
    }


def _stochastic_volatility(steps: int) -> dict[str, Any]:
    values, x = stochastic_volatility(steps)
    mu, phi, sigma = (tf.constant(values[name], tf.float32) for name in ("mu", "phi", "sigma"))
    return {
        "observations": tf.constant(x, tf.float32),
        "initial_state_prior": tfd.Normal(mu, sigma / tf.sqrt(1 - phi**2)),
        "transition_fn": lambda step, z: tfd.Normal(mu + phi * (z - mu), sigma),
        "observation_fn": lambda step, z: tfd.Normal(0.0, tf.exp(z / 2)),
    }
