"""Frames whose columns are of different kinds."""

# numpyro's own distributions override their base class like this.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, Key, Shaped


class Columns(dist.Distribution):
    """Independent columns in groups, each with its own factorised distribution.

    Args:
        parts: the distribution of each group, with one entry per column.
        columns: for each group the columns of the frame that it is about.

    A draw is one frame [dim] of real numbers; `log_prob` has one entry per column.
    """

    pytree_data_fields: ClassVar = ("parts",)
    pytree_aux_fields: ClassVar = ("columns",)

    def __init__(self, parts: tuple[dist.Distribution, ...], columns: tuple[tuple[int, ...], ...]) -> None:
        self.parts, self.columns = parts, columns
        super().__init__((sum(len(group) for group in columns),), ())

    @property
    def order(self) -> np.ndarray:
        """The position of each column of a frame in the concatenated groups."""
        return np.argsort(np.concatenate([np.asarray(group) for group in self.columns]))

    def sample(self, key: Key[Array, ""], sample_shape: tuple[int, ...] = ()) -> Shaped[Array, "*sample dim"]:
        """Draw frames; counts, symbols and flags come back as real numbers.

        Args:
            key: a random key.
            sample_shape: how many frames to draw, as a shape; one by default.

        Returns:
            The frames [*sample_shape, dim].
        """
        keys = jax.random.split(key, len(self.parts))
        drawn = [part.sample(k, sample_shape) for part, k in zip(self.parts, keys, strict=True)]
        kind = jnp.result_type(*drawn, float)
        return jnp.concatenate([jnp.asarray(x, kind) for x in drawn], axis=-1)[..., self.order]

    def log_prob(self, value: Shaped[Array, " dim"], intermediates: None = None) -> Float[Array, " dim"]:
        """log p of every column.

        Args:
            value: a frame [dim].
            intermediates: not used.

        Returns:
            One log-probability per column [dim], -inf for values outside its support.
        """
        scores = [
            part.log_prob(value[..., np.asarray(group)]) for part, group in zip(self.parts, self.columns, strict=True)
        ]
        return jnp.concatenate(scores, axis=-1)[..., self.order]

    @property
    def mean(self) -> Float[Array, " dim"]:
        """The mean of every column; of a categorical one the mean of its symbols' numbers."""
        return jnp.concatenate([_mean(part) for part in self.parts], axis=-1)[..., self.order]


def _mean(part: dist.Distribution) -> Float[Array, " column"]:
    if isinstance(part, dist.CategoricalLogits):
        probs = jax.nn.softmax(jnp.asarray(part.logits))
        return jnp.sum(probs * jnp.arange(probs.shape[-1]), axis=-1)
    return jnp.asarray(part.mean)
