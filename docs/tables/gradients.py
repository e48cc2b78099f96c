"""What every gradient estimates, measured on a small model: the first table of `docs/gradients.md`.

Run it from the root of the repository: `python docs/tables/gradients.py`, about three minutes on two cores.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import fivo
from fivo.bounds import FIVO
from fivo.gradients import MovingAverage, OtherParticles, ResamplingScore, Score, get_gradient
from fivo.models import LinearGaussian, SequenceModel
from fivo.resampling import Always

NUM_PARTICLES = 4
X = np.array([1.2, -0.3, 0.8, 2.0, 0.1])
START = 0.3


class Walk(SequenceModel):
    """z_t ~ N(drift z_{t-1}, 1), x_t ~ N(z_t, 1); q moves the prior's mean towards x_t by the share `pull`."""

    drift: jax.Array
    pull: jax.Array

    def initial_state(self, context):  # noqa: ANN001, ANN201
        return jnp.asarray(START, self.drift.dtype)

    def prior(self, state, context):  # noqa: ANN001, ANN201
        return dist.Normal(self.drift * state, 1.0)

    def proposal(self, state, evidence, prior):  # noqa: ANN001, ANN201
        return dist.Normal(prior.loc + self.pull * (evidence[0] - prior.loc), 0.9)

    def emission(self, state, latent, context):  # noqa: ANN001, ANN201
        return dist.Normal(latent[None], 1.0)


class Row(NamedTuple):
    """Averages of the gradient with respect to a parameter of p and one of q, their errors and spreads."""

    name: str
    drift: float
    drift_error: float
    pull: float
    pull_error: float
    drift_deviation: float
    pull_deviation: float


def estimators() -> dict[str, FIVO]:
    """Every gradient with a fixed schedule: resampling after every step."""
    slope = MovingAverage(slope=-2.0)  # about the average log-likelihood of a step

    def scored(baseline: object) -> FIVO:
        return FIVO(NUM_PARTICLES, criterion=Always(), gradient=ResamplingScore(baseline))

    def named(gradient: str) -> FIVO:
        return FIVO(NUM_PARTICLES, criterion=Always(), gradient=get_gradient(gradient))

    return {
        "pathwise": named("pathwise"),
        "resampling-score": scored("none"),
        "resampling-score, moving average": scored(slope),
        "resampling-score, filters": scored("filters"),
        "resampling-score, particles": scored("particles"),
        "score, particles": FIVO(NUM_PARTICLES, criterion=Always(), gradient=Score(OtherParticles())),
        "doubly-reparameterized": named("doubly-reparameterized"),
        "sticking-the-landing": named("sticking-the-landing"),
        "stop-gradient": named("stop-gradient"),
        "soft resampling": FIVO(NUM_PARTICLES, resampling="soft", criterion=Always()),
        "relaxed resampling": FIVO(NUM_PARTICLES, resampling="relaxed", criterion=Always()),
        "transport resampling": FIVO(NUM_PARTICLES, resampling="transport", criterion=Always()),
    }


def measure(name: str, bound: FIVO, num_runs: int) -> Row:
    """Independent gradients of one estimator."""
    model = Walk(jnp.asarray(0.8), jnp.asarray(0.3))
    batch = fivo.Batch.from_sequences([X[:, None].astype(np.float32)])

    @jax.jit
    def gradients(keys: jax.Array) -> Walk:
        return jax.vmap(jax.grad(lambda m, k: bound(m, batch, key=k).log_evidence[0]), in_axes=(None, 0))(model, keys)

    keys = jax.random.split(jax.random.key(0), num_runs)
    drawn = gradients(keys)
    drift, pull = np.asarray(drawn.drift, np.float64), np.asarray(drawn.pull, np.float64)
    errors = [values.std() / np.sqrt(num_runs) for values in (drift, pull)]
    return Row(name, drift.mean(), errors[0], pull.mean(), errors[1], drift.std(), pull.std())


def score_of_the_likelihood() -> float:
    """The exact derivative of log p(x) with respect to the drift."""

    def log_evidence(drift: jax.Array) -> jax.Array:
        model = LinearGaussian(
            transition_matrix=drift[None, None],
            transition_covariance=jnp.eye(1),
            emission_matrix=jnp.eye(1),
            emission_covariance=jnp.eye(1),
            initial_mean=(drift * START)[None],
            initial_covariance=jnp.eye(1),
        )
        return model.log_evidence(fivo.Batch.from_sequences([X[:, None].astype(np.float32)]))[0]

    return float(jax.grad(log_evidence)(jnp.asarray(0.8)))


def main() -> None:
    """Print the table."""
    print(f"exact derivative of log p(x) with respect to the drift: {score_of_the_likelihood():.3f}\n")
    print("| gradient | of p: mean | deviation | of q: mean | deviation |")
    print("|---|---|---|---|---|")
    for name, bound in estimators().items():
        row = measure(name, bound, 20_000)
        p = f"{row.drift:.3f} ± {row.drift_error:.3f} | {row.drift_deviation:.2f}"
        q = f"{row.pull:.3f} ± {row.pull_error:.3f} | {row.pull_deviation:.2f}"
        print(f"| {row.name} | {p} | {q} |", flush=True)


if __name__ == "__main__":
    main()
