"""The programs of an export, as functions of plain arrays with a batch axis of any size."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fivo._scoring import weights_dtype
from fivo.batch import Batch
from fivo.inference.exported import Signature
from fivo.inference.forecasting import draw_rows
from fivo.inference.plain import PlainRows
from fivo.inference.rowfilters import row_filter
from fivo.models import LinearGaussian, SequenceModel
from fivo.smc import ParticleFilter


@dataclass(frozen=True)
class Programs:
    """What is exported of a model: `begin`, `step`, `score` and `forecast`.

    Args:
        model: The model.
        dim: Entries of a frame.
        width: Entries of the inputs, 0 for none.
        num_particles: Of the filters.
        quantiles: Which quantiles `step` returns.
        horizon: How many rows `forecast` draws.
        num_samples: Draws of `forecast` for each sequence.
    """

    model: SequenceModel
    dim: int
    width: int
    num_particles: int
    quantiles: tuple[float, ...]
    horizon: int
    num_samples: int

    def signatures(self, b: Any, t: Any) -> dict[str, Signature]:
        """The programs with their arguments, by their names.

        Args:
            b: The size of the batch, or a symbol for it.
            t: The number of steps, or a symbol for it.
        """
        dtype = weights_dtype(self.model)
        shaped = jax.ShapeDtypeStruct
        keys = {"keys": shaped((b, 2), jnp.uint32)}
        rows = {"x": shaped((b, t, self.dim), dtype), "mask": shaped((b, t, self.dim), jnp.bool_)}
        rows["lengths"] = shaped((b,), jnp.int32)
        row = {"x": shaped((b, self.dim), dtype), "mask": shaped((b, self.dim), jnp.bool_)}
        future = {}
        if self.width:
            rows["inputs"] = shaped((b, t, self.width), dtype)
            row["inputs"] = shaped((b, self.width), dtype)
            future["future_inputs"] = shaped((b, self.horizon, self.width), dtype)
        made = {}
        if self._streams:
            plain = self._plain
            state = {"state": jax.eval_shape(jax.vmap(plain.begin), keys["keys"])}
            made["begin"] = Signature(jax.vmap(plain.begin), keys)
            made["step"] = Signature(jax.vmap(plain.step), state | row)
        made["score"] = Signature(self.score, keys | rows)
        made["forecast"] = Signature(self.forecast, keys | rows | future)
        return made

    def score(
        self, keys: Array, x: Array, mask: Array, lengths: Array, inputs: Array | None = None
    ) -> dict[str, Array]:
        """log p(x_t | x_1:t-1) of every row; zero past a sequence's end."""
        batch = _padded(x, mask, lengths, inputs)
        if isinstance(self.model, LinearGaussian):
            return {"log_likelihood": self.model.log_increments(batch)[:, :-1]}
        seen = self._filter(self.model, batch, key=jax.random.wrap_key_data(keys))
        return {"log_likelihood": seen.log_increments[:, :-1]}

    def forecast(
        self,
        keys: Array,
        x: Array,
        mask: Array,
        lengths: Array,
        inputs: Array | None = None,
        future_inputs: Array | None = None,
    ) -> dict[str, Array]:
        """Draws of the rows that follow, [batch, sample, horizon, dim]."""
        batch = _padded(x, mask, lengths, inputs)
        samples, _ = draw_rows(
            self.model,
            batch,
            self.horizon,
            future_inputs,
            jax.random.wrap_key_data(keys),
            self.num_samples,
            self.num_particles,
        )
        return {"samples": samples}

    @property
    def _filter(self) -> ParticleFilter:
        return ParticleFilter(self.num_particles, "systematic")

    @property
    def _streams(self) -> bool:
        return self.model.causal or isinstance(self.model, LinearGaussian)

    @property
    def _plain(self) -> PlainRows:
        return PlainRows(row_filter(self._filter, self.model, quantiles=self.quantiles))


def _padded(x: Array, mask: Array, lengths: Array, inputs: Array | None) -> Batch:
    """A batch with one more step than was given, which is padding: any filter then has a step after the first."""
    one = ((0, 0), (0, 1), (0, 0))
    return Batch(jnp.pad(x, one), lengths, jnp.pad(mask, one), None if inputs is None else jnp.pad(inputs, one))
