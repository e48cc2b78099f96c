"""What a derivative of the filter follows; values are the same whatever the rules are."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PyTree

from fivo._fuse import recompute
from fivo.distributions import sample, weight_dtype
from fivo.models import Frame, SequenceModel, extend, log_prior_ratio
from fivo.resampling import AnyScheme


class Proposed(NamedTuple):
    """A particle extended by one step.

    Args:
        latent: z_t.
        log_likelihood: log g_t(x_t | z_t); in a twisted filter with log r_t - log r_{t-1} added.
        log_ratio: log p_t(z_t) - log q_t(z_t).
        state: h_{t+1}.
        log_proposal: log q_t(z_t), where a gradient asks for it.
        log_twist: log r_t of a twisted filter.
    """

    latent: PyTree
    log_likelihood: Float[Array, "*particle"]
    log_ratio: Float[Array, "*particle"]
    state: PyTree
    log_proposal: Float[Array, "*particle"] | None = None
    log_twist: Float[Array, "*particle"] | None = None


class Rules(eqx.Module):
    """The ways from the parameters to log p̂ that a derivative follows: all but the choice of ancestors.

    `fivo.gradients` has others; write your own as a subclass. What particles carry may be more than the model's state.
    """

    weights: ClassVar[Float[Array, "batch time particle"] | None] = None
    """Numbers that the steps hand to `propose`, one for each particle."""

    def begin(self, state: PyTree) -> PyTree:
        """What a particle carries in place of h_1.

        Args:
            state: h_1.

        Returns:
            What it carries.
        """
        return state

    def propose(
        self,
        model: SequenceModel,
        key: Key[Array, ""],
        state: PyTree,
        frame: Frame,
        weight: Float[Array, ""] | None,
        first: bool,
    ) -> Proposed:
        """Extend one particle by one step.

        Args:
            model: the model.
            key: a random key.
            state: what the particle carries.
            frame: what the step reads of the sequence.
            weight: what `weights` has for the particle; None without them.
            first: whether this is the first step of a model that has an `initial_prior`.

        Returns:
            The extended particle.
        """
        dtype = weight_dtype(model)
        made = extend(model, state, frame, lambda q: sample(q, key, dtype), first=first)
        if made.proposal is made.prior:
            log_ratio = jnp.zeros_like(made.log_likelihood)
        else:
            log_ratio = recompute(log_prior_ratio, made.prior, made.proposal, made.latent).astype(dtype)
        return Proposed(made.latent, made.log_likelihood, log_ratio, made.state)

    def resume(self, resampled: Bool[Array, ""], state: PyTree) -> PyTree:
        """What a particle carries on with after a step, its resampling done.

        Args:
            resampled: whether particles were resampled.
            state: what the particle carries.

        Returns:
            What it carries on with.
        """
        return state

    def scheme(self, scheme: AnyScheme) -> AnyScheme:
        """How ancestors are drawn.

        Args:
            scheme: the filter's own scheme.

        Returns:
            The scheme to use.
        """
        return scheme


EVERY_PATH = Rules()
"""The rules of a plain derivative: every path is followed."""
