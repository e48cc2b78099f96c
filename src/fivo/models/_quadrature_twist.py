"""Twists without parameters: the emission of the next few frames, integrated over the next latents."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree, Shaped

from fivo.batch import Sequence
from fivo.errors import InputError
from fivo.models._contract import SequenceModel
from fivo.models._twisted import Twist
from fivo.weights import log_sum_exp

MAX_POINTS = 4096
"""The most evaluations of the emission for one twist of one particle."""


class NextFrames(NamedTuple):
    """Frames t + 1 … t + w as step t sees them: [time, window, ...]; past the sequence's end none is observed."""

    x: Shaped[Array, "*time window dim"]
    mask: Bool[Array, "*time window dim"]
    context: PyTree
    history: PyTree
    history_now: PyTree


class QuadratureTwist(Twist):
    """r_t ≈ p(x_t+1:t+w | z_t) by Gauss–Hermite quadrature over the next w latents (Lawson et al. 2022).

    Args:
        num_points: points in every dimension.
        window: w, frames to look ahead.

    For Markov models whose prior is a diagonal normal. Where every observed entry has its own latent, and the
    emission factorises, the integral does so too, and the number of latents does not matter; otherwise points are on a
    grid of all dimensions, which must be few.
    """

    num_points: int = eqx.field(static=True, default=5)
    window: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        for name in ("num_points", "window"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} must be a positive integer, got {value!r:.60}.")

    def check(self, model: SequenceModel) -> None:
        if not model.markov:
            raise InputError(
                f"the latents of {type(model).__name__} must be a Markov chain to be integrated over; use a "
                "RecurrentTwist or an AuxiliaryTwist."
            )

    def lookahead(self, model: SequenceModel, sequence: Sequence) -> NextFrames:
        context, _, history = model.encode(sequence)
        x, mask = sequence.observations, sequence.mask
        observed = jnp.ones(x.shape, bool) if mask is None else mask
        observed = observed & (jnp.arange(x.shape[0]) < sequence.length)[:, None]
        places = jnp.arange(x.shape[0])[:, None] + 1 + jnp.arange(self.window)[None, :]
        inside = places < x.shape[0]
        places = jnp.where(inside, places, 0)
        ahead = jax.tree.map(lambda leaf: leaf[places], (x, observed, context, history))
        return NextFrames(ahead[0], ahead[1] & inside[..., None], ahead[2], ahead[3], history)

    def __call__(self, model: SequenceModel, state: PyTree, latent: PyTree, future: NextFrames) -> Float[Array, ""]:
        following = model.advance(state, latent, future.history_now)
        return jnp.sum(self._integral(model, following, future, 0))

    def _integral(self, model: SequenceModel, state: PyTree, future: NextFrames, step: int) -> Float[Array, "*factor"]:
        """log ∫ p(z | h) g(x | z) … dz of the frames from `step` on: one number, or one for each entry of z."""
        context, history = jax.tree.map(lambda leaf: leaf[step], (future.context, future.history))
        prior: Any = model.prior(state, context)
        if self.num_points == 1:
            points, log_weights, factorised = prior.mean[None], jnp.zeros(1), False
        else:
            points, log_weights, factorised = self._grid(model, prior, state, context, future)

        def value(z: Float[Array, "*latent"]) -> Float[Array, "*factor"]:
            emission = model.emission(state, z, context)
            if emission.event_dim:
                score = jnp.where(jnp.all(future.mask[step]), jnp.sum(emission.log_prob(future.x[step])), 0)
            else:
                score = jnp.where(future.mask[step], emission.log_prob(future.x[step]), 0)
            score = score if factorised else jnp.sum(score)
            if step + 1 == self.window:
                return score
            return score + self._integral(model, model.advance(state, z, history), future, step + 1)

        values = jax.vmap(value)(points)
        log_weights = log_weights.astype(values.dtype).reshape(-1, *[1] * (values.ndim - 1))
        return log_sum_exp(jnp.moveaxis(values + log_weights, 0, -1))

    def _grid(
        self, model: SequenceModel, prior: Any, state: PyTree, context: PyTree, future: NextFrames
    ) -> tuple[Float[Array, "point *latent"], Float[Array, " point"], bool]:
        """Points and log-weights for E[f(z)] under the prior, and whether each entry of z is on its own."""
        if not hasattr(prior, "scale") or getattr(prior, "event_dim", 1):
            raise InputError(
                f"{type(model).__name__}.prior must be a diagonal normal for quadrature, got {type(prior).__name__}."
            )
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.num_points)
        emission = model.emission(state, prior.loc, context)
        size = prior.loc.size
        factorised = not emission.event_dim and tuple(emission.batch_shape) == prior.loc.shape
        if not factorised:
            if self.num_points**size > MAX_POINTS:
                raise InputError(
                    f"quadrature must take at most {MAX_POINTS} points for a twist, got {self.num_points} points in "
                    f"each of {size} dimensions; use fewer points, or a RecurrentTwist."
                )
            grid = np.stack(np.meshgrid(*[nodes] * size, indexing="ij"), axis=-1).reshape(-1, *prior.loc.shape)
            mesh = np.stack(np.meshgrid(*[weights] * size, indexing="ij"), axis=-1)
            weights = np.prod(mesh.reshape(-1, size), axis=1)
        else:
            grid = np.broadcast_to(nodes.reshape(-1, *[1] * prior.loc.ndim), (self.num_points, *prior.loc.shape))
        log_weights = jnp.asarray(np.log(weights / weights.sum()), prior.loc.dtype)
        return prior.loc[None] + prior.scale[None] * jnp.asarray(grid, prior.loc.dtype), log_weights, factorised


class AuxiliaryTwist(QuadratureTwist):
    """r_t = g(x_t+1 | z_t+1 at the prior's mean): the one-step lookahead of the auxiliary particle filter (Pitt and
    Shephard 1999), for any model whose prior has a mean.
    """

    def __init__(self) -> None:
        self.num_points, self.window = 1, 1

    def check(self, model: SequenceModel) -> None:
        """Goes with every model.

        Args:
            model: the model.
        """
