"""How the variance of p̂_N grows with the length of a sequence: the tables of `docs/tightness.md`.

Run it from the root of the repository: `python docs/tables/variance_growth.py`, about two minutes on two cores.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import fivo
from fivo.bounds import FIVO, IWAE, Bound
from fivo.models import LinearGaussian, simulate

NOISE = 1.0
NUM_STEPS = (5, 10, 20, 40)
NUM_SEQUENCES = 8
RUNS_AT_ONCE = 50


class Growth(NamedTuple):
    """Relative variances of p̂_N for T steps: geometric means over sequences, FIVO's measured with a standard error."""

    num_steps: int
    iwae: float
    fivo: float
    fivo_error: float


class Spread(NamedTuple):
    """Measured Var(log p̂_N) for T steps, averaged over sequences."""

    num_steps: int
    iwae: float
    fivo: float


def model(noise: float = NOISE) -> LinearGaussian:
    """A scalar autoregression seen in noise, with its prior as proposal."""
    return LinearGaussian(
        transition_matrix=jnp.array([[0.9]]),
        transition_covariance=jnp.array([[0.3]]),
        emission_matrix=jnp.array([[1.0]]),
        emission_covariance=jnp.array([[noise]]),
        initial_mean=jnp.array([0.0]),
        initial_covariance=jnp.array([[1.0]]),
    )


def beginnings() -> fivo.Batch:
    """The first T steps, for every T, of sequences drawn from the model; those of one sequence stand together."""
    keys = jax.random.split(jax.random.key(0), NUM_SEQUENCES)
    sequences = [np.asarray(simulate(model(), max(NUM_STEPS), key=key).observations) for key in keys]
    return fivo.Batch.from_sequences([x[:num_steps] for x in sequences for num_steps in NUM_STEPS])


def importance_variance(batch: fivo.Batch) -> np.ndarray:
    """The exact relative variance of one importance weight w = p(x | z), z from the prior.

    The square of N(x; z, R) is N(x; z, R/2) / √(4πR), so E[w²] is the evidence under half the noise, up to a constant.
    """
    log_second = model(NOISE / 2).log_evidence(batch) - batch.lengths * 0.5 * np.log(4 * np.pi * NOISE)
    return np.expm1(np.asarray(log_second - 2 * model().log_evidence(batch), np.float64))


def log_ratios(bound: Bound, batch: fivo.Batch, num_runs: int) -> np.ndarray:
    """Draws of log p̂_N(x) - log p(x), [sequence, T, run]."""
    exact = np.asarray(model().log_evidence(batch), np.float64)
    keys = jax.random.split(jax.random.key(1), num_runs // RUNS_AT_ONCE)
    repeated = jax.tree.map(lambda leaf: jnp.repeat(leaf, RUNS_AT_ONCE, axis=0), batch)
    draws = [np.asarray(bound(model(), repeated, key=key).log_evidence, np.float64) for key in keys]
    ratios = np.concatenate([drawn.reshape(len(exact), -1) for drawn in draws], axis=1) - exact[:, None]
    return ratios.reshape(NUM_SEQUENCES, len(NUM_STEPS), -1)


def growth(num_particles: int, num_runs: int) -> list[Growth]:
    """Relative variances with many particles: exact for IWAE, measured for FIVO."""
    batch = beginnings()
    exact = importance_variance(batch).reshape(NUM_SEQUENCES, -1) / num_particles
    squares = np.expm1(log_ratios(FIVO(num_particles), batch, num_runs)) ** 2
    measured = squares.mean(axis=2)
    relative_errors = squares.std(axis=2) / np.sqrt(num_runs) / measured
    iwae, filtered = (np.exp(np.log(variances).mean(axis=0)) for variances in (exact, measured))
    errors = filtered * np.sqrt((relative_errors**2).sum(axis=0)) / NUM_SEQUENCES
    return [Growth(*row) for row in zip(NUM_STEPS, iwae, filtered, errors, strict=True)]


def spread(num_particles: int, num_runs: int) -> list[Spread]:
    """Var(log p̂_N) with few particles, where p̂_N itself is too skewed for its variance to be measured."""
    batch = beginnings()
    variances = (
        log_ratios(bound, batch, num_runs).var(axis=2).mean(axis=0)
        for bound in (IWAE(num_particles), FIVO(num_particles))
    )
    return [Spread(*row) for row in zip(NUM_STEPS, *variances, strict=True)]


def main() -> None:
    """Print the tables."""
    num_particles = 10 * max(NUM_STEPS)
    print(f"| T | IWAE, N = {num_particles} (exact) | FIVO, N = {num_particles} (measured) | FIVO per step |")
    print("|---|---|---|---|")
    for row in growth(num_particles, num_runs=500):
        per_step = row.fivo / row.num_steps
        print(f"| {row.num_steps} | {row.iwae:.3g} | {row.fivo:.4f} ± {row.fivo_error:.4f} | {per_step:.5f} |")
    few = (4, 16)
    print("\n| T | " + " | ".join(f"{name}, N = {n}" for n in few for name in ("IWAE", "FIVO")) + " |")
    print("|---|" + "---|" * (2 * len(few)))
    for rows in zip(*(spread(n, num_runs=2000) for n in few), strict=True):
        cells = [f"{value:.2f}" for row in rows for value in (row.iwae, row.fivo)]
        print(f"| {rows[0].num_steps} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
