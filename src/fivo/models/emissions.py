"""What a neural model emits: how frames enter its networks and how its last layer becomes a distribution."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Shaped

from fivo.errors import InputError
from fivo.models.factors import Bernoulli, Normal
from fivo.models.layers import softplus
from fivo.models.symbols import Symbols

SCALE_FLOOR = 1e-4
LATENT_SHIFT = 0.5
EMISSION_SHIFT = 0.25
RATE_FLOOR = 1e-4


@runtime_checkable
class Emission(Protocol):
    """The meeting point of data and networks; only the networks' inputs are centred, never the targets."""

    @property
    def num_features(self) -> int:
        """What the data encoder reads of a frame."""
        ...

    @property
    def num_outputs(self) -> int:
        """What the emission network returns."""
        ...

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        """Centred frames; zero for what is missing."""
        ...

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        """g_t(x_t | ...) from the network's outputs."""
        ...


class BernoulliEmission(eqx.Module):
    """Independent Bernoullis whose logits are offset by those of the training mean, which is not trained."""

    mean: Float[Array, " dim"]

    def __init__(self, train_mean: ArrayLike) -> None:
        self.mean = _fixed(train_mean, 1)
        if not bool(jnp.all((self.mean >= 0) & (self.mean <= 1))):
            raise InputError("got a training mean outside of [0, 1] where Bernoulli rates were expected.")

    @property
    def num_features(self) -> int:
        return self.mean.shape[0]

    @property
    def num_outputs(self) -> int:
        return self.mean.shape[0]

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        check_frames(x, self.num_outputs)
        return centred(x, self.mean, mask)

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        rate = jnp.clip(lax.stop_gradient(self.mean), RATE_FLOOR, 1 - RATE_FLOOR)
        return Bernoulli(outputs + jnp.log(rate) - jnp.log1p(-rate))


class NormalEmission(eqx.Module):
    """Independent normals, for waveforms."""

    mean: Float[Array, " dim"]

    def __init__(self, train_mean: ArrayLike) -> None:
        self.mean = _fixed(train_mean, 1)

    @property
    def num_features(self) -> int:
        return self.mean.shape[0]

    @property
    def num_outputs(self) -> int:
        return 2 * self.mean.shape[0]

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        check_frames(x, self.num_features)
        return centred(x, self.mean, mask)

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        return diagonal_normal(outputs, EMISSION_SHIFT)


class CategoricalEmission(eqx.Module):
    """Independent categoricals over the symbols 0 … K - 1, read as one-hot vectors; offset like the Bernoullis."""

    rates: Float[Array, "dim symbol"]

    def __init__(self, train_rates: ArrayLike) -> None:
        self.rates = _fixed(train_rates, 2)
        if not bool(jnp.all(self.rates >= 0)):
            raise InputError("got negative training rates where those of symbols were expected.")

    @property
    def num_features(self) -> int:
        return self.rates.size

    @property
    def num_outputs(self) -> int:
        return self.rates.size

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        check_frames(x, self.rates.shape[0])
        one_hot = jax.nn.one_hot(x.astype(jnp.int32), self.rates.shape[1], dtype=self.rates.dtype)
        wide = None if mask is None else jnp.broadcast_to(mask[..., None], one_hot.shape)
        return centred(one_hot, self.rates, wide).reshape(*x.shape[:-1], self.num_features)

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        offset = jnp.log(jnp.clip(lax.stop_gradient(self.rates), RATE_FLOOR, 1))
        return Symbols(outputs.reshape(self.rates.shape) + offset)


def centred(
    x: Shaped[Array, "*shape"], mean: Float[Array, "..."], mask: Bool[Array, "*shape"] | None
) -> Float[Array, "*shape"]:
    """x less the training mean; a missing entry is fed as that mean, so zero."""
    deviation = x - jnp.broadcast_to(lax.stop_gradient(mean), x.shape)
    return deviation if mask is None else jnp.where(mask, deviation, 0)


def check_frames(x: Shaped[Array, "*time dim"], dim: int) -> None:
    """Refuse frames of another size than the emission's."""
    if x.shape[-1] != dim:
        raise InputError(f"the observations have {x.shape[-1]} entries per frame where the model emits {dim}.")


def diagonal_normal(
    outputs: Float[Array, " outputs"], shift: float, mean: Float[Array, " dim"] | None = None
) -> dist.Normal:
    """Independent normals from a network's means and raw scales; `mean` makes the network's means residuals."""
    loc, raw = jnp.split(outputs, 2)
    scale = softplus(raw + shift) + SCALE_FLOOR
    return Normal(loc if mean is None else mean + loc, scale)


def _fixed(statistics: ArrayLike, ndim: int) -> Float[Array, "..."]:
    """Statistics of the training data as an array, which gradients never reach."""
    array = jnp.asarray(statistics, jnp.float32)
    if array.ndim != ndim or not array.size or not bool(jnp.all(jnp.isfinite(array))):
        raise InputError(
            f"got training statistics of shape {array.shape} where a finite array of {ndim} axes was expected."
        )
    return array
