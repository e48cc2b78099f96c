"""What a neural model emits: how frames enter its networks, and how its last layer becomes a distribution.

Only what the networks read is centred and scaled, never what they are scored on. Statistics of the training data are
constants: no optimizer reaches them.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Shaped

from fivo.constants import Constant
from fivo.distributions import Bernoulli, Columns, NegativeBinomial, Normal, Poisson, StudentT, Symbols, softplus
from fivo.errors import InputError

SCALE_FLOOR = 1e-4
LATENT_SHIFT = 0.5
EMISSION_SHIFT = 0.25
RATE_FLOOR = 1e-4
DEGREES_FLOOR = 2.0
"""Student t's have at least a finite mean and, at two degrees of freedom, the edge of a finite variance."""


class Emission(eqx.Module):
    """How frames enter a model's networks, and how its last layer becomes g_t. Subclass it for a kind of your own."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Entries of a frame."""

    @property
    def num_features(self) -> int:
        """What the data encoder reads of a frame."""
        return self.dim

    @property
    @abstractmethod
    def num_outputs(self) -> int:
        """What the emission network returns."""

    @abstractmethod
    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        """What the networks read of frames: centred, with zeros for what is missing.

        Args:
            x: frames [..., dim].
            mask: [..., dim], true where an entry was observed; None where all were.

        Returns:
            Numbers for the networks [..., features].
        """

    @abstractmethod
    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        """g_t(x_t | ...) from the network's outputs.

        Args:
            outputs: of the emission network [num_outputs].

        Returns:
            The distribution of a frame, one factor per entry.
        """


class _Centred(Emission):
    """Frames that are read less their training mean, over their standard deviation where it is given."""

    mean: Constant = eqx.field(static=True)
    scale: Constant | None = eqx.field(static=True)

    def __init__(self, train_mean: ArrayLike, train_scale: ArrayLike | None = None) -> None:
        self.mean = _statistics(train_mean, 1)
        self.scale = None if train_scale is None else _statistics(train_scale, 1)
        if self.scale is not None and (self.scale.shape != self.mean.shape or not (self.scale.value > 0).all()):
            raise InputError("train_scale must hold one positive number per entry of train_mean.")

    @property
    def dim(self) -> int:
        return self.mean.shape[0]

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        check_frames(x, self.dim)
        deviation = centred(x, self.mean, mask)
        if self.scale is None:
            return deviation
        return deviation / jnp.broadcast_to(jnp.asarray(self.scale.value, deviation.dtype), x.shape)


class BernoulliEmission(_Centred):
    """Independent Bernoullis whose logits are offset by those of the training mean.

    Args:
        train_mean: rates of ones in the training data [dim], from 0 to 1.
    """

    def __init__(self, train_mean: ArrayLike) -> None:
        super().__init__(train_mean)
        if not ((self.mean.value >= 0) & (self.mean.value <= 1)).all():
            raise InputError("train_mean must hold rates between 0 and 1, got others.")

    @property
    def num_outputs(self) -> int:
        return self.dim

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        with jax.ensure_compile_time_eval():
            rate = jnp.clip(jnp.asarray(self.mean.value, outputs.dtype), RATE_FLOOR, 1 - RATE_FLOOR)
            on, off = jnp.log(rate), jnp.log1p(-rate)
        return Bernoulli(outputs + on - off)


class NormalEmission(_Centred):
    """Independent normals.

    Args:
        train_mean: means of the training data [dim].
        train_scale: standard deviations of the training data [dim]; given, the networks speak in units of them. By
            default the data is standardised already.
    """

    def __init__(self, train_mean: ArrayLike, train_scale: ArrayLike | None = None) -> None:
        super().__init__(train_mean, train_scale)

    @property
    def num_outputs(self) -> int:
        return 2 * self.dim

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        if self.scale is None:
            return diagonal_normal(outputs, EMISSION_SHIFT)
        loc, raw = jnp.split(outputs, 2)
        return Normal(*_in_units(self, loc, softplus(raw + EMISSION_SHIFT) + SCALE_FLOOR))


class StudentTEmission(_Centred):
    """Independent Student t's, for real numbers with outliers: location, scale and degrees of freedom from the network.

    Args:
        train_mean: means of the training data [dim].
        train_scale: standard deviations of the training data [dim]; given, the networks speak in units of them.
    """

    def __init__(self, train_mean: ArrayLike, train_scale: ArrayLike | None = None) -> None:
        super().__init__(train_mean, train_scale)

    @property
    def num_outputs(self) -> int:
        return 3 * self.dim

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        loc, raw, freedom = jnp.split(outputs, 3)
        loc, scale = _in_units(self, loc, softplus(raw + EMISSION_SHIFT) + SCALE_FLOOR)
        return StudentT(DEGREES_FLOOR + softplus(freedom + 3.0), loc, scale)


class _Counts(Emission):
    """Counts, read as logarithms of one plus the count, over those of the training mean."""

    mean: Constant = eqx.field(static=True)

    def __init__(self, train_mean: ArrayLike) -> None:
        self.mean = _statistics(train_mean, 1)
        if not (self.mean.value >= 0).all():
            raise InputError("train_mean must hold averages of counts, which are not negative.")

    @property
    def dim(self) -> int:
        return self.mean.shape[0]

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        check_frames(x, self.dim)
        return centred(jnp.log1p(jnp.maximum(x, 0)), Constant(np.log1p(self.mean.value)), mask)

    def _rate(self, raw: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """Positive, the training mean where the network says zero, and linear where it says much."""
        base = jnp.asarray(np.maximum(self.mean.value, RATE_FLOOR), raw.dtype)
        return base * softplus(raw) / jnp.log(2.0).astype(raw.dtype) + SCALE_FLOOR


class PoissonEmission(_Counts):
    """Independent Poisson counts, whose rates are multiples of the training mean.

    Args:
        train_mean: average counts in the training data [dim].
    """

    def __init__(self, train_mean: ArrayLike) -> None:
        super().__init__(train_mean)

    @property
    def num_outputs(self) -> int:
        return self.dim

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        return Poisson(self._rate(outputs))


class NegativeBinomialEmission(_Counts):
    """Independent counts that vary more than a Poisson's; mean and concentration from the network.

    Args:
        train_mean: average counts in the training data [dim].
    """

    def __init__(self, train_mean: ArrayLike) -> None:
        super().__init__(train_mean)

    @property
    def num_outputs(self) -> int:
        return 2 * self.dim

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        raw, shape = jnp.split(outputs, 2)
        return NegativeBinomial(self._rate(raw), softplus(shape + 1.0) + SCALE_FLOOR)


class CategoricalEmission(Emission):
    """Independent categoricals over the symbols 0 … K - 1, read as one-hot vectors; offset like the Bernoullis.

    Args:
        train_rates: shares of the symbols in the training data [dim, symbol].
    """

    rates: Constant = eqx.field(static=True)

    def __init__(self, train_rates: ArrayLike) -> None:
        self.rates = _statistics(train_rates, 2)
        if not (self.rates.value >= 0).all():
            raise InputError("train_rates must not be negative, got rates that are.")

    @property
    def dim(self) -> int:
        return self.rates.shape[0]

    @property
    def num_features(self) -> int:
        return self.rates.value.size

    @property
    def num_outputs(self) -> int:
        return self.rates.value.size

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        check_frames(x, self.dim)
        one_hot = jax.nn.one_hot(x.astype(jnp.int32), self.rates.shape[1], dtype=self.rates.value.dtype)
        wide = None if mask is None else jnp.broadcast_to(mask[..., None], one_hot.shape)
        return centred(one_hot, self.rates, wide).reshape(*x.shape[:-1], self.num_features)

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        with jax.ensure_compile_time_eval():
            offset = jnp.log(jnp.clip(jnp.asarray(self.rates.value, outputs.dtype), RATE_FLOOR, 1))
        return Symbols(outputs.reshape(self.rates.shape) + offset)


class MixedEmission(Emission):
    """A kind per column: groups of columns with an emission each.

    Args:
        parts: pairs of an emission and the columns of the frame that it is about; they cover every column once.
    """

    parts: tuple[Emission, ...]
    columns: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(self, *parts: tuple[Emission, Any]) -> None:
        for part, _ in parts:
            if not isinstance(part, Emission):
                raise InputError(f"a part of a MixedEmission must be an Emission and its columns, got {part!r:.60}.")
        self.parts = tuple(part for part, _ in parts)
        self.columns = tuple(tuple(int(c) for c in np.atleast_1d(np.asarray(columns))) for _, columns in parts)
        together = sorted(c for group in self.columns for c in group)
        sizes = [(part.dim, len(group)) for part, group in zip(self.parts, self.columns, strict=True)]
        if not parts or together != list(range(len(together))) or any(dim != size for dim, size in sizes):
            raise InputError(
                f"the parts of a MixedEmission must cover the columns 0 … {max(len(together) - 1, 0)} once, each with "
                f"an emission as wide as its columns, got columns {list(self.columns)} for widths "
                f"{[dim for dim, _ in sizes]}."
            )

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def num_features(self) -> int:
        return sum(part.num_features for part in self.parts)

    @property
    def num_outputs(self) -> int:
        return sum(part.num_outputs for part in self.parts)

    def features(
        self, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time features"]:
        check_frames(x, self.dim)
        read = [
            part.features(x[..., np.asarray(group)], None if mask is None else mask[..., np.asarray(group)])
            for part, group in zip(self.parts, self.columns, strict=True)
        ]
        return jnp.concatenate(read, axis=-1)

    def __call__(self, outputs: Float[Array, " outputs"]) -> dist.Distribution:
        ends = np.cumsum([part.num_outputs for part in self.parts])
        pieces = jnp.split(outputs, ends[:-1])
        return Columns(tuple(part(piece) for part, piece in zip(self.parts, pieces, strict=True)), self.columns)


def centred(x: Shaped[Array, "*shape"], mean: Constant, mask: Bool[Array, "*shape"] | None) -> Float[Array, "*shape"]:
    """x less the training mean; a missing entry is read as that mean, so zero."""
    deviation = x - jnp.broadcast_to(jnp.asarray(mean.value), x.shape)
    return deviation if mask is None else jnp.where(mask, deviation, 0)


def check_frames(x: Shaped[Array, "*time dim"], dim: int) -> None:
    """Refuse frames of another size than the model's."""
    if x.shape[-1] != dim:
        raise InputError(f"the observations must have {dim} entries per frame, as the model has, got {x.shape[-1]}.")


def diagonal_normal(
    outputs: Float[Array, " outputs"], shift: float, mean: Float[Array, " dim"] | None = None
) -> dist.Normal:
    """Independent normals from a network's means and raw scales; `mean` makes the network's means residuals."""
    loc, raw = jnp.split(outputs, 2)
    scale = softplus(raw + shift) + SCALE_FLOOR
    return Normal(loc if mean is None else mean + loc, scale)


def _in_units(
    emission: _Centred, loc: Float[Array, " dim"], scale: Float[Array, " dim"]
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    """Location and scale of the data itself, where the network speaks in units of the training data's spread."""
    if emission.scale is None:
        return loc, scale
    unit, mean = (jnp.asarray(c.value, loc.dtype) for c in (emission.scale, emission.mean))
    return mean + unit * loc, unit * scale


def _statistics(statistics: ArrayLike, ndim: int) -> Constant:
    """Statistics of the training data as a constant."""
    array = np.asarray(statistics, np.float32)
    if array.ndim != ndim or not array.size or not np.isfinite(array).all():
        raise InputError(
            f"training statistics must be a finite array with {ndim} axes, got one of shape {array.shape} that is not."
        )
    return Constant(array)
