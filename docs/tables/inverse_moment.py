"""Lemma 1 and Proposition 1 (c) of the paper on a case where both sides are known: the table of `docs/objectives.md`.

Run it from the root of the repository: `python docs/tables/inverse_moment.py`, a few seconds.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import fivo
from fivo.bounds import IWAE
from fivo.models import LatentVariableModel

RATE = 2.0
NUM_PARTICLES = (1, 2, 4, 16, 64)
NUM_RUNS = 200_000


class Silence(LatentVariableModel):
    """z ~ Exponential(λ), x ~ Poisson(z), and nothing is counted: x = 0.

    With z from the prior a weight is w = exp(-z), so that P(w < u) = u^λ for u < 1, and p(x) = E[w] = λ / (λ + 1).
    """

    rate: jax.Array

    def prior(self, state, context):  # noqa: ANN001, ANN201
        return dist.Exponential(self.rate)

    def emission(self, state, latent, context):  # noqa: ANN001, ANN201
        return dist.Poisson(latent)


class Row(NamedTuple):
    """E[1/p̂_N] with its standard error, and the gap as Proposition 1 (c) predicts and as it was measured."""

    num_particles: int
    inverse: float
    inverse_error: float
    predicted: float
    gap: float
    gap_error: float


def lemma_bound(rate: float = RATE) -> float:
    """C M^ε / ε + 1 / M of Lemma 1 with C = 1, ε = λ - 1 and M = 1: it holds for every N."""
    return 1 / (rate - 1) + 1


def half_variance(num_particles: int, rate: float = RATE) -> float:
    """½ Var(p̂_N / p) from E[w²] = λ / (λ + 2)."""
    return 1 / (2 * num_particles * rate * (rate + 2))


def measure(num_particles: int, num_runs: int = NUM_RUNS) -> Row:
    """Many independent estimates; the gap with p̂/p - 1, whose mean is zero, as control variate."""
    model, evidence = Silence(jnp.full((1,), RATE)), RATE / (RATE + 1)
    batch = fivo.Batch(jnp.zeros((num_runs, 1, 1)), jnp.ones((num_runs,), jnp.int32))
    drawn = IWAE(num_particles)(model, batch, key=jax.random.key(num_particles)).log_evidence
    ratios = np.exp(np.asarray(drawn, np.float64)) / evidence
    inverse, gap = 1 / (evidence * ratios), ratios - 1 - np.log(ratios)
    root = np.sqrt(num_runs)
    predicted = half_variance(num_particles)
    return Row(num_particles, inverse.mean(), inverse.std() / root, predicted, gap.mean(), gap.std() / root)


def main() -> None:
    """Print the table."""
    print("| N | E[1/p̂_N], measured | Lemma 1 | gap, predicted | gap, measured |")
    print("|---|---|---|---|---|")
    for num_particles in NUM_PARTICLES:
        row = measure(num_particles)
        print(
            f"| {num_particles} | {row.inverse:.4f} ± {row.inverse_error:.4f} | ≤ {lemma_bound():g} | "
            f"{row.predicted:.6f} | {row.gap:.6f} ± {row.gap_error:.6f} |"
        )


if __name__ == "__main__":
    main()
