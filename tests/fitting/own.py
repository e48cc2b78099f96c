"""A model, bounds and data of a user's own, and everything else that a run of them is made of."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
from jaxtyping import Array, Float

import fivo
from fivo.bounds import AIS, ELBO, FIVO, MIS, AffineGate, AffineProposal
from fivo.bounds.temperatures import LearnedTemperatures
from fivo.data import Dataset
from fivo.models import VAE, NormalEmission, SequenceModel
from fivo.smc import Leapfrog

STEPS = 120
SETTINGS = {"steps": STEPS, "batch_size": 2, "validate_every": 30, "log_every": 10, "progress": False}


class Pendulum(SequenceModel):
    """A damped pendulum, given small pushes, whose angle is seen through noise."""

    frequency: Float[Array, ""]
    damping: Float[Array, ""]
    log_noise: Float[Array, ""]

    def __init__(self, frequency: float = 1.0) -> None:
        self.frequency, self.damping, self.log_noise = jnp.asarray(frequency), jnp.asarray(0.1), jnp.asarray(0.0)

    def initial_state(self, context):
        return jnp.array([1.0, 0.0])

    def prior(self, state, context):
        angle, speed = state
        pull = -self.frequency * jnp.sin(angle) - self.damping * speed
        return dist.Normal(jnp.stack([angle + 0.3 * speed, speed + 0.3 * pull]), jnp.array([0.05, 0.2]))

    def emission(self, state, latent, context):
        return dist.Normal(latent[:1], jnp.exp(self.log_noise))


def make_pendulum(dataset: Dataset) -> Pendulum:
    """What `--model` takes."""
    assert dataset.dimension == 1
    return Pendulum()


def two_filters(model: SequenceModel, batch: fivo.Batch, *, key: Any) -> Float[Array, " batch"]:
    """The mean of two bounds is one too; written as anybody would write it, for one key and without diagnostics."""
    first, second = jax.random.split(key)
    small, large = FIVO(2)(model, batch, key=first), FIVO(4)(model, batch, key=second)
    return 0.5 * (small.log_evidence + large.log_evidence)


class Blend(eqx.Module):
    """So much FIVO, so much ELBO: a bound with a parameter of its own, which grows with the better of the two."""

    gate: Float[Array, ""]

    def __call__(self, model: SequenceModel, batch: fivo.Batch, *, key: Any) -> Float[Array, " batch"]:
        share = jax.nn.sigmoid(self.gate)
        fivo_key, elbo_key = jax.random.split(key)
        better, worse = FIVO(4)(model, batch, key=fivo_key), ELBO(1)(model, batch, key=elbo_key)
        return share * better.log_evidence + (1 - share) * worse.log_evidence


def tiny_waves(length: int = 8, seed: int = 0) -> Dataset:
    """Swings of the pendulum that is to be learned, all of other lengths."""
    rng = np.random.default_rng(seed)

    def swing(steps: int) -> np.ndarray:
        time = np.arange(steps)[:, None]
        return (np.cos(0.6 * time) * 0.97**time + 0.1 * rng.standard_normal((steps, 1))).astype(np.float32)

    counts = {"train": 6, "valid": 3, "test": 3}
    splits = {split: tuple(swing(length - i % 3) for i in range(count)) for split, count in counts.items()}
    return Dataset.waveform("waves", splits, 0.3)


def points() -> Dataset:
    """Frames without time, around two centres."""
    rng = np.random.default_rng(0)
    centres = np.array([[-1.0, 1.0], [1.0, -1.0]])

    def point() -> np.ndarray:
        return (centres[rng.integers(2)] + 0.3 * rng.standard_normal((1, 2))).astype(np.float32)

    counts = {"train": 16, "valid": 4, "test": 4}
    return Dataset.waveform("points", {split: tuple(point() for _ in range(n)) for split, n in counts.items()}, 1.0)


def autoencoder() -> VAE:
    return VAE(NormalEmission(np.zeros(2, np.float32)), 1, 4, key=jax.random.key(0))


def mixture() -> MIS:
    """Two proposals and a gate, all of which learn."""
    proposals = tuple(
        AffineProposal(jnp.zeros((1, 2)), jnp.full((1,), offset), jnp.zeros((1,))) for offset in (-0.5, 0.5)
    )
    return MIS(proposals, AffineGate(jnp.zeros((2, 2)), jnp.zeros(2)), num_samples=2)


def annealed() -> AIS:
    return AIS(2, LearnedTemperatures(2), Leapfrog(0.2, 2))


def clipped_adamw(steps: int = STEPS) -> optax.GradientTransformation:
    """An optimizer as users chain them."""
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(0.02, steps)))


CASES: dict[str, tuple[Any, Any, Any]] = {
    "function": (Pendulum, lambda: two_filters, tiny_waves),
    "module": (Pendulum, lambda: Blend(jnp.asarray(0.0)), tiny_waves),
    "mis": (autoencoder, mixture, points),
    "ais": (autoencoder, annealed, points),
}
"""What makes the model, the bound and the data of a run."""


def fit_own(case: str, out: Any, **changes: Any) -> fivo.Run:
    """Train a case, or continue it."""
    model, bound, data = (make() for make in CASES[case])
    return fivo.fit(model, data, bound=bound, optimizer=clipped_adamw(), out=out, **SETTINGS | changes)
