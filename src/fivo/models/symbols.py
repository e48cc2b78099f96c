"""Categoricals over symbols that arrive as any number type."""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.typing import ArrayLike
from jaxtyping import Array, Float


class Symbols(dist.CategoricalLogits):
    """A categorical that reads symbols stored as any number type; what is no symbol has probability zero."""

    def log_prob(self, value: ArrayLike, intermediates: None = None) -> Float[Array, " dim"]:
        symbol = jnp.asarray(value, jnp.int32)
        known = (symbol >= 0) & (symbol < jnp.shape(self.logits)[-1]) & (symbol == value)
        return jnp.where(known, super().log_prob(jnp.where(known, symbol, 0)), -jnp.inf)
