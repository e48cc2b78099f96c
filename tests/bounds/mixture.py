"""A plain latent variable model whose posterior is a mixture: the case where multiple proposals can be exact."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

import fivo
from fivo.bounds import AffineGate, AffineProposal
from fivo.models import LatentVariableModel


class TwoHills(LatentVariableModel):
    """z ~ Σ_k π_k N(m_k, s²) and x ~ N(z, r²), with a wide normal as its own proposal."""

    logits: Float[Array, " component"]
    means: Float[Array, " component"]
    s: ClassVar[float] = 0.6
    r: ClassVar[float] = 0.9

    def prior(self, state, context):
        components = dist.Normal(self.means[None], jnp.full_like(self.means[None], self.s))
        return dist.MixtureSameFamily(dist.Categorical(logits=self.logits[None]), components)

    def proposal(self, state, evidence, prior):
        return dist.Normal(0.7 * evidence, 1.5)

    def emission(self, state, latent, context):
        return dist.Normal(latent, self.r)

    def log_evidence(self, batch: fivo.Batch) -> np.ndarray:
        """log Σ_k π_k N(x; m_k, s² + r²)."""
        terms = self._log_terms(np.asarray(batch.observations[:, 0, 0], np.float64))
        return np.log(np.exp(terms).sum(axis=1))

    def responsibilities(self, x: np.ndarray) -> np.ndarray:
        """The posterior weights of the components, [x, component]."""
        terms = np.exp(self._log_terms(x))
        return terms / terms.sum(axis=1, keepdims=True)

    def _log_terms(self, x: np.ndarray) -> np.ndarray:
        means, log_pi = np.asarray(self.means, np.float64), np.asarray(jax.nn.log_softmax(self.logits), np.float64)
        variance = self.s**2 + self.r**2
        return log_pi - 0.5 * ((x[:, None] - means) ** 2 / variance + np.log(2 * np.pi * variance))

    def exact(self) -> tuple[tuple[AffineProposal, ...], AffineGate]:
        """The components of the posterior as proposals, and the gate that weights them rightly."""
        variance = self.s**2 + self.r**2
        gain, scale = self.s**2 / variance, self.s * self.r / variance**0.5
        proposals = tuple(
            AffineProposal(jnp.full((1, 1), gain), jnp.full((1,), (1 - gain) * m), jnp.full((1,), np.log(scale)))
            for m in np.asarray(self.means)
        )
        bias = jax.nn.log_softmax(self.logits) - 0.5 * self.means**2 / variance
        return proposals, AffineGate(self.means[:, None] / variance, bias)


def two_hills() -> TwoHills:
    return TwoHills(jnp.asarray([0.4, -0.4]), jnp.asarray([-1.5, 1.8]))


def observations(num: int, seed: int = 0) -> fivo.Batch:
    """Observations from the model."""
    rng = np.random.default_rng(seed)
    model = two_hills()
    rates = np.asarray(jax.nn.softmax(model.logits), np.float64)
    centres = np.asarray(model.means, np.float64)[rng.choice(2, num, p=rates / rates.sum())]
    x = centres + np.hypot(model.s, model.r) * rng.standard_normal(num)
    return fivo.Batch.from_sequences(x[:, None, None])
