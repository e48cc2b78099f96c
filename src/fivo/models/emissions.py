"""What a neural model emits: how frames enter its networks and how its last layer becomes a distribution."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Bool, Float, Shaped

SCALE_FLOOR = 1e-4
LATENT_SHIFT = 0.5
EMISSION_SHIFT = 0.25


@runtime_checkable
class Emission(Protocol):
    """The meeting point of data and networks; only the networks' inputs are centred, never the targets."""

    @property
    def num_features(self) -> int: ...

    @property
    def num_outputs(self) -> int: ...

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]: ...

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution: ...


class BernoulliEmission(eqx.Module):
    """Independent Bernoullis whose logits are offset by those of the training mean, which is not trained."""

    mean: Float[Array, " dim"]

    def __init__(self, train_mean: Float[np.ndarray | Array, " dim"]) -> None:
        self.mean = jnp.asarray(train_mean, jnp.float32)

    @property
    def num_features(self) -> int:
        return self.mean.shape[0]

    @property
    def num_outputs(self) -> int:
        return self.mean.shape[0]

    def features(self, x, mask):
        return centred(x, self.mean, mask)

    def __call__(self, outputs):
        rate = jnp.clip(lax.stop_gradient(self.mean), 1e-4, 1 - 1e-4)
        return dist.BernoulliLogits(outputs + jnp.log(rate) - jnp.log1p(-rate))


class NormalEmission(eqx.Module):
    """Independent normals, for waveforms."""

    mean: Float[Array, " dim"]

    def __init__(self, train_mean: Float[np.ndarray | Array, " dim"]) -> None:
        self.mean = jnp.asarray(train_mean, jnp.float32)

    @property
    def num_features(self) -> int:
        return self.mean.shape[0]

    @property
    def num_outputs(self) -> int:
        return 2 * self.mean.shape[0]

    def features(self, x, mask):
        return centred(x, self.mean, mask)

    def __call__(self, outputs):
        return diagonal_normal(outputs, EMISSION_SHIFT)


class CategoricalEmission(eqx.Module):
    """Independent categoricals over the symbols 0 … K - 1, read as one-hot vectors."""

    rates: Float[Array, "dim symbol"]

    def __init__(self, train_rates: Float[np.ndarray | Array, "dim symbol"]) -> None:
        self.rates = jnp.asarray(train_rates, jnp.float32)

    @property
    def num_features(self) -> int:
        return self.rates.size

    @property
    def num_outputs(self) -> int:
        return self.rates.size

    def features(self, x, mask):
        one_hot = jax.nn.one_hot(x, self.rates.shape[1], dtype=self.rates.dtype)
        wide = None if mask is None else jnp.broadcast_to(mask[..., None], one_hot.shape)
        return centred(one_hot, self.rates, wide).reshape(*x.shape[:-1], self.num_features)

    def __call__(self, outputs):
        offset = jnp.log(jnp.clip(lax.stop_gradient(self.rates), 1e-4, 1))
        return dist.CategoricalLogits(outputs.reshape(self.rates.shape) + offset)


def centred(x: Array, mean: Array, mask: Array | None) -> Array:
    """x less the training mean; a missing entry is fed as that mean, so zero."""
    deviation = x - jnp.broadcast_to(lax.stop_gradient(mean), x.shape)
    return deviation if mask is None else jnp.where(mask, deviation, 0)


def diagonal_normal(
    outputs: Float[Array, " outputs"], shift: float, mean: Float[Array, " dim"] | None = None
) -> dist.Normal:
    """Independent normals from a network's means and raw scales; `mean` makes the network's means residuals."""
    loc, raw = jnp.split(outputs, 2)
    scale = jax.nn.softplus(raw + shift) + SCALE_FLOOR
    return dist.Normal(loc if mean is None else mean + loc, scale)
