"""What several tests share: small models, repeated runs of a bound, and means compared with the truth."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import fivo
from fivo.bounds import Bound
from fivo.models import DiscreteHMM, LinearGaussian, SequenceModel, simulate


def linear_gaussian(proposal: str = "prior", noise: float = 2.0) -> LinearGaussian:
    """Two latent dimensions seen through one, without symmetries; `noise` is the emission's variance."""
    return LinearGaussian(
        transition_matrix=jnp.array([[0.8, 0.2], [-0.3, 0.6]]),
        transition_covariance=jnp.array([[0.5, 0.1], [0.1, 0.3]]),
        emission_matrix=jnp.array([[1.0, 0.5]]),
        emission_covariance=jnp.array([[noise]]),
        initial_mean=jnp.array([0.3, -0.2]),
        initial_covariance=jnp.array([[1.0, 0.2], [0.2, 0.7]]),
        proposal=proposal,
    )


def hidden_markov(proposal: str = "prior") -> DiscreteHMM:
    """Three states, three symbols, without symmetries."""
    return DiscreteHMM(
        initial_probs=jnp.array([0.5, 0.3, 0.2]),
        transition_probs=jnp.array([[0.6, 0.3, 0.1], [0.15, 0.7, 0.15], [0.25, 0.3, 0.45]]),
        emission_probs=jnp.array([[0.5, 0.3, 0.2], [0.25, 0.45, 0.3], [0.15, 0.25, 0.6]]),
        proposal=proposal,
    )


def one_sequence(model: SequenceModel, num_steps: int, seed: int = 1) -> fivo.Batch:
    """A batch of one sequence drawn from the model."""
    x = simulate(model, num_steps, key=jax.random.key(seed)).observations
    return fivo.Batch(x[None], jnp.full((1,), num_steps, jnp.int32))


def repeated(batch: fivo.Batch, num_runs: int) -> fivo.Batch:
    """A batch of one sequence made `num_runs` copies of it, for independent runs in one program."""
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, num_runs, axis=0), batch)


def relative_evidence(
    bound: Bound, model: DiscreteHMM | LinearGaussian, batch: fivo.Batch, num_runs: int, seed: int = 0
) -> np.ndarray:
    """Independent draws of p̂_N(x) / p(x) for the one sequence of a batch."""
    drawn = log_evidence_of(bound, model, repeated(batch, num_runs), jax.random.key(seed))
    return np.exp(np.asarray(drawn, np.float64) - np.float64(model.log_evidence(batch)[0]))


@partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})  # compiles faster and runs as fast
def log_evidence_of(bound: Bound, model: SequenceModel, batch: fivo.Batch, key: jax.Array) -> jax.Array:
    """log p̂_N for every sequence of a batch."""
    return bound(model, batch, key=key).log_evidence


def standard_errors_off(samples: np.ndarray, truth: float | np.ndarray) -> np.ndarray:
    """How many standard errors the mean over the first axis lies above the truth."""
    samples = np.asarray(samples, np.float64)
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    # What does not vary has to be right up to rounding.
    return (samples.mean(axis=0) - truth) / np.maximum(error, 1e-7 * np.maximum(np.abs(truth), 1))


def mean_within(samples: np.ndarray, truth: float | np.ndarray, sigmas: float = 4) -> bool:
    """Whether the mean over the first axis is the truth, as far as the number of samples can tell."""
    return bool(np.all(np.abs(standard_errors_off(samples, truth)) < sigmas))
