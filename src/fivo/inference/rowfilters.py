"""Filters that take one row at a time and say what it was expected to be: by particles, or exactly."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaincc, ndtri
from jaxtyping import Array, Bool, Float, Key, PyTree, Shaped

from fivo.distributions import weight_dtype
from fivo.inference.prediction import predict_next, surprise_of
from fivo.models import LinearGaussian, SequenceModel
from fivo.smc import ParticleFilter

NUM_SAMPLES = 100
"""Draws of each prediction."""


class Rows(NamedTuple):
    """What a filter says of rows, [batch, time, ...]; past a sequence's end everything is zero."""

    log_likelihood: Float[Array, "*rows"]
    """log p̂(x_t | x_<t)."""
    mean: Float[Array, "*rows dim"]
    """The expected x_t before it was seen."""
    quantiles: Float[Array, "*rows quantile dim"]
    """Quantiles of x_t before it was seen."""
    surprise: Float[Array, "*rows"]
    """A p-value: how often a row drawn from the prediction would have been less likely than x_t; uniform for rows that
    come from the model itself, ties broken at random. 1 for rows that are missing."""
    state_mean: Float[Array, "*rows latent"]
    """The mean of the latents given x_1:t, all parts of them side by side."""
    state_quantiles: Float[Array, "*rows quantile latent"]
    """Quantiles of the same."""
    ess: Float[Array, "*rows"]
    """The effective sample size after the row."""


class RowFilter(eqx.Module):
    """A filter that predicts every row before it sees it.

    Args:
        pf: The particle filter.
        model: A model whose proposal reads no future frames.
        quantiles: Which quantiles to return.
        num_samples: Draws of each prediction.
    """

    pf: ParticleFilter
    model: SequenceModel
    quantiles: tuple[float, ...] = eqx.field(static=True, default=(0.1, 0.5, 0.9))
    num_samples: int = eqx.field(static=True, default=NUM_SAMPLES)

    def begin(self, key: Key[Array, ""]) -> PyTree:
        """Start a stream.

        Args:
            key: A random key for the whole stream.

        Returns:
            The state before the first row.
        """
        return self.pf.init(self.model, key=key)

    def step(
        self,
        state: PyTree,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[PyTree, Rows]:
        """Take in one row.

        Args:
            state: From `begin` or the last `step`.
            x: The row [dim], on the model's scale.
            mask: True where an entry was observed; None where all were.
            inputs: The row's inputs [input].

        Returns:
            The state for the next row, and what was expected of this one, how likely it was, and the latents after it.
        """
        dtype = weight_dtype(self.model)
        levels = jnp.asarray(self.quantiles, dtype)
        own = jax.random.fold_in(jax.random.fold_in(state.key, 0x5EED), state.step)
        draw_key, tie_key = jax.random.split(own)
        drawn = predict_next(self.pf, self.model, state, inputs, self.num_samples, key=draw_key)
        following, info = self.pf.step(self.model, state, x, mask=mask, inputs=inputs)
        seen = drawn.x.astype(dtype)
        return following, Rows(
            log_likelihood=info.log_increment,
            mean=jnp.mean(seen, axis=0),
            quantiles=jnp.quantile(seen, levels, axis=0),
            surprise=surprise_of(drawn, x, mask, tie_key),
            state_mean=_weighted_mean(info.latents, info.log_weights, dtype),
            state_quantiles=_weighted_quantiles(info.latents, info.log_weights, levels, dtype),
            ess=info.ess,
        )


class ExactRowFilter(RowFilter):
    """A `RowFilter` of a linear-Gaussian model, by the Kalman filter: nothing is drawn.

    Args:
        pf: Not used.
        model: The linear-Gaussian model.
        quantiles: Which quantiles to return.
        num_samples: Not used.
    """

    model: LinearGaussian  # pyright: ignore[reportIncompatibleVariableOverride]

    def begin(self, key: Key[Array, ""]) -> PyTree:
        return self.model.kalman_begin()

    def step(
        self,
        state: PyTree,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[PyTree, Rows]:
        following, made = self.model.kalman_step(state, x, mask, inputs)
        levels = ndtri(jnp.asarray(self.quantiles, made.mean.dtype))
        # Of a Gaussian, the less likely rows are those farther out: their share is a tail of χ².
        count = jnp.asarray(x.shape[0]) if mask is None else jnp.sum(mask)
        degrees = jnp.maximum(count, 1).astype(made.mean.dtype)
        return following, Rows(
            log_likelihood=made.log_increment,
            mean=made.expected,
            quantiles=_normal_quantiles(made.expected, made.spread, levels),
            surprise=jnp.where(count > 0, gammaincc(degrees / 2, made.distance / 2), 1),
            state_mean=made.mean,
            state_quantiles=_normal_quantiles(made.mean, made.covariance, levels),
            ess=jnp.full((), self.pf.num_particles, made.mean.dtype),
        )


def row_filter(
    pf: ParticleFilter,
    model: SequenceModel,
    *,
    quantiles: tuple[float, ...] = (0.1, 0.5, 0.9),
    num_samples: int = NUM_SAMPLES,
) -> RowFilter:
    """The filter of rows that fits a model: exact where that is known.

    Args:
        pf: The particle filter, for models that need one.
        model: The model.
        quantiles: Which quantiles to return.
        num_samples: Draws of each prediction.

    Returns:
        The filter.
    """
    kind: Any = ExactRowFilter if isinstance(model, LinearGaussian) else RowFilter
    return kind(pf, model, tuple(quantiles), num_samples)


def _normal_quantiles(
    mean: Float[Array, " dim"], covariance: Float[Array, "dim dim"], levels: Float[Array, " quantile"]
) -> Float[Array, "quantile dim"]:
    deviation = jnp.sqrt(jnp.maximum(jnp.diagonal(covariance), 0))
    return mean[None, :] + levels[:, None] * deviation[None, :]


def _flat(latents: PyTree, dtype: Any) -> Float[Array, "particle latent"]:
    leaves = [leaf.reshape(leaf.shape[0], -1).astype(dtype) for leaf in jax.tree.leaves(latents)]
    return jnp.concatenate(leaves, axis=1)


def _weighted_mean(latents: PyTree, log_weights: Float[Array, " particle"], dtype: Any) -> Float[Array, " latent"]:
    return jnp.exp(log_weights) @ _flat(latents, dtype)


def _weighted_quantiles(
    latents: PyTree, log_weights: Float[Array, " particle"], levels: Float[Array, " quantile"], dtype: Any
) -> Float[Array, "quantile latent"]:
    values = _flat(latents, dtype)
    weights = jnp.exp(log_weights)

    def column(v: Float[Array, " particle"]) -> Float[Array, " quantile"]:
        order = jnp.argsort(v)
        cumulative = jnp.cumsum(weights[order])
        # The middle of each particle's own share of the probability, and a line between them.
        return jnp.interp(levels, cumulative - 0.5 * weights[order], v[order])

    return jax.vmap(column, in_axes=1, out_axes=1)(values)
