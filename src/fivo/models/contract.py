"""The model contract: a sequential latent variable model p with its proposal q.

Methods speak of **one particle of one sequence**; the filter maps them over particles and sequences. The
defaults make a plain state-space model: no features of the past, `full[t]` = x_t, a bootstrap proposal, and
a state that is the previous latent.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from fivo.models.scoring import log_prob, observation_log_prob, weight_dtype


class SequenceModel(eqx.Module):
    """p(x, z) = Π_t p_t(z_t | history) g_t(x_t | z_t, history) and q(z | x) = Π_t q_t(z_t | history, x)."""

    markov: ClassVar[bool] = False
    """Whether the latents are a Markov chain that the observations do not feed back into; smoothers need it."""

    @property
    def causal(self) -> bool:
        """Whether q_t sees no observation after x_t, so that the model can be filtered one frame at a time."""
        return True

    def encode(
        self,
        observations: Shaped[Array, "time dim"],
        mask: Bool[Array, "time dim"] | None,
        length: Int[Array, ""],
    ) -> tuple[PyTree, PyTree]:
        """(past, full), once per sequence: `past[t]` from x_1:t-1 (T + 1 entries), `full[t]` from anything.

        `mask` is None where every entry was observed. Missing entries and padding hold zeros.
        """
        return (), observations

    def initial_memory(self) -> tuple[PyTree, PyTree]:
        """(past_1, memory) before the first frame: where `encode_next` starts."""
        return (), ()

    def encode_next(
        self, memory: PyTree, x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None
    ) -> tuple[PyTree, PyTree, PyTree]:
        """(full_t, past_{t+1}, memory): the one-frame form of `encode`. A smoothing proposal's full_t is None."""
        return x, (), memory

    def initial_state(self, past: PyTree) -> PyTree:
        """h_1."""
        raise NotImplementedError

    def prior(self, state: PyTree, past: PyTree) -> dist.Distribution:
        """p_t(z_t | history)."""
        raise NotImplementedError

    def proposal(self, state: PyTree, full: PyTree, prior: dist.Distribution) -> dist.Distribution:
        """q_t(z_t | history, x). Returning `prior` itself makes a bootstrap step, whose ratio p/q is not computed."""
        return prior

    def emission(self, state: PyTree, latent: PyTree, past: PyTree) -> dist.Distribution:
        """g_t(x_t | z_t, history). Factorised emissions (no event dimension) admit single missing entries."""
        raise NotImplementedError

    def advance(self, state: PyTree, latent: PyTree, past: PyTree) -> PyTree:
        """h_{t+1}, given past_{t+1}."""
        return latent

    def log_joint(
        self,
        latents: PyTree,
        observations: Shaped[Array, "time dim"],
        mask: Bool[Array, "time dim"] | None = None,
        length: Int[Array, ""] | None = None,
    ) -> Float[Array, ""]:
        """log p(x_1:T, z_1:T) of one sequence and given latents."""
        time = observations.shape[0]
        length = jnp.asarray(time) if length is None else length
        past, _ = self.encode(observations, mask, length)
        now, following = past_pairs(past)

        def step(state: PyTree, inputs: Any) -> tuple[PyTree, Float[Array, ""]]:
            t, latent, x, mask_t, past_t, past_next = inputs
            log_p = log_prob(self.prior(state, past_t), latent)
            log_g = observation_log_prob(self.emission(state, latent, past_t), x, mask_t)
            return self.advance(state, latent, past_next), jnp.where(t < length, log_p + log_g, 0)

        state = self.initial_state(jax.tree.map(lambda leaf: leaf[0], past))
        inputs = (jnp.arange(time), latents, observations, mask, now, following)
        return jnp.sum(lax.scan(step, state, inputs)[1]).astype(weight_dtype(self))


def past_pairs(past: PyTree) -> tuple[PyTree, PyTree]:
    """(past_t, past_{t+1}) for t = 1 … T from the T + 1 entries of `past`."""
    return jax.tree.map(lambda leaf: leaf[:-1], past), jax.tree.map(lambda leaf: leaf[1:], past)
