"""Rows that arrive one by one: each is scored before the next one arrives, and every series keeps its own state."""

import hashlib
import os
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from fivo._scoring import compiler_options, weights_dtype
from fivo.data import RowPast, RowReader, RowStep, TableSchema
from fivo.errors import InputError
from fivo.files.tensors import read_tensors, tensor_bytes, tensors_of, write_tensors
from fivo.inference.anomalies import Calibration
from fivo.inference.plain import PlainRows, State
from fivo.inference.rowfilters import Rows, row_filter
from fivo.inference.scored import ScoredRow
from fivo.models import SequenceModel
from fivo.serialization import to_arrays
from fivo.smc import ParticleFilter

VERSION = 1


class RowStream:
    """Scores rows one by one, for any number of series, each with its own state; `Run.stream` makes them.

    Args:
        model: A model whose proposal reads no future rows; of a `LinearGaussian` the answers are exact.
        schema: How the table was read that it was trained on.
        num_particles: Of the filter.
        seed: Random seed. The i-th series that appears draws what it would draw as the i-th of a table that is
            filtered with this seed.
        quantiles: Which quantiles to give.
        calibration: What ordinary rows scored, for p-values; None for none.
        rate: The false-alarm rate of the alarms.
        state_quantiles: Also give quantiles of the latents, not only their means.
        warn: Called with a sentence about whatever looks wrong but may be right.

    Call it with a row: a mapping of the table's columns to cells in the user's units, where None, NaN and "" are
    missing. A row that is refused changes nothing.
    """

    def __init__(
        self,
        model: SequenceModel,
        schema: TableSchema,
        *,
        num_particles: int = 100,
        seed: int = 0,
        quantiles: tuple[float, ...] = (0.1, 0.5, 0.9),
        calibration: Calibration | None = None,
        rate: float = 0.01,
        state_quantiles: bool = False,
        warn: Callable[[str], None] = warnings.warn,
    ) -> None:
        if calibration is not None:
            calibration.check_rate(rate, "rows")
        self.schema, self.quantiles, self.rate = schema, tuple(quantiles), rate
        self._model, self._seed, self._warn = model, seed, warn
        self._calibration, self._num_particles = calibration, num_particles
        self._reader = RowReader(schema)
        self._plain = PlainRows(
            row_filter(ParticleFilter(num_particles, "systematic"), model, quantiles=self.quantiles)
        )
        self._dtype = weights_dtype(model)
        left_out = {"surprise": calibration is None, "state_quantiles": not state_quantiles}
        self._parts = [name for name in Rows._fields if not left_out.get(name, False)]
        self._costs = np.log([column.scale for column in schema.values])
        self._ties = np.random.default_rng(seed)
        self._keys = np.zeros((0, 2), np.uint32)
        self._pasts: dict[str, RowPast] = {}
        self._states: dict[str, State] = {}
        self._begun = 0
        self._warned = False

    @property
    def series(self) -> tuple[str, ...]:
        """The ids of the series that appeared, in their order; empty texts of tables without an id."""
        return tuple(self._pasts)

    def __call__(self, row: Mapping[str, Any]) -> ScoredRow:
        """Score a row, and take it into the state of its series.

        Args:
            row: The cells by the names of the table's columns: id, time, values, inputs, static attributes.

        Returns:
            What was expected of the row, how likely it was, and the latents after it.
        """
        name = self._reader.id_of(row)
        past = self._pasts.get(name)
        steps, now = self._reader.read(row, past)
        if not self._warned and past is not None:
            sentence = self._reader.gap_warning(past.time, now.time)
            if sentence is not None:
                self._warned = True
                self._warn(sentence)
        state = self._states[name] if past is not None else self._begin(self._begun)
        for step in steps[:-1]:
            state, _ = self._take(state, step)
        following, found = self._take(state, steps[-1])
        if not np.isfinite(found.log_likelihood):  # impossible under the model: scored so, and then taken for missing
            following, _ = self._take(state, steps[-1]._replace(mask=np.zeros_like(steps[-1].mask)))
        self._begun += past is None
        self._states[name], self._pasts[name] = following, now
        return self._scored(row, found, steps[-1].mask)

    def forget(self, id: Any) -> None:
        """Drop the state of a series; its next row is again its first.

        Args:
            id: The series.
        """
        name = str(id).strip()
        if name not in self._pasts:
            raise InputError(f"the stream must have seen a series to forget it, but it has not seen {name!r:.60}.")
        del self._pasts[name], self._states[name]

    def save(self, path: str | os.PathLike) -> None:
        """Write the states of all series, atomically and with a checksum.

        Args:
            path: The file, which `restore` reads.
        """
        write_tensors(path, *self._saved())

    def to_bytes(self) -> bytes:
        """Take the states of all series apart.

        Returns:
            What `save` would write to a file.
        """
        return tensor_bytes(*self._saved())

    def restore(self, source: str | os.PathLike | bytes) -> "RowStream":
        """Go on from states that `save` or `to_bytes` made with the same model and settings.

        Args:
            source: A file, or bytes.

        Returns:
            This stream.
        """
        is_bytes = isinstance(source, bytes | bytearray | memoryview)
        where = "the given state" if is_bytes else str(source)
        arrays, about = tensors_of(bytes(source)) if is_bytes else read_tensors(Path(source))
        for what, mine in self._about.items():
            if about.get(what) != mine:
                raise InputError(
                    f"{where} must be the state of a stream with the same model and settings, but its {what} differs; "
                    "restore it into a stream like the one that saved it."
                )
        like = jax.eval_shape(self._plain.begin, jax.ShapeDtypeStruct((2,), jnp.uint32))
        pasts = [msgspec.convert(past, RowPast) for past in about["series"]]
        shapes = {name: (len(pasts), *leaf.shape) for name, leaf in like.items()}
        if {name: array.shape for name, array in arrays.items()} != shapes:
            raise InputError(f"{where} must hold the arrays of a stream of this model, but it holds others.")
        self._pasts = dict(zip(about["ids"], pasts, strict=True))
        self._states = {
            name: {leaf: jnp.asarray(array[i]) for leaf, array in arrays.items()} for i, name in enumerate(self._pasts)
        }
        self._begun, self._ties.bit_generator.state = about["begun"], about["ties"]
        return self

    def __repr__(self) -> str:
        values = ", ".join(column.name for column in self.schema.values)
        return f"RowStream({len(self._pasts)} series of {values}, {self._num_particles} particles)"

    def _saved(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        like = jax.eval_shape(self._plain.begin, jax.ShapeDtypeStruct((2,), jnp.uint32))
        states = jax.device_get(list(self._states.values()))
        arrays = {
            name: np.stack([state[name] for state in states]) if states else np.zeros((0, *leaf.shape), leaf.dtype)
            for name, leaf in like.items()
        }
        series = [msgspec.to_builtins(past) for past in self._pasts.values()]
        now = {"begun": self._begun, "ties": self._ties.bit_generator.state}
        return arrays, {**self._about, **now, "ids": list(self._pasts), "series": series}

    @cached_property
    def _about(self) -> dict[str, Any]:
        """What a saved state must agree with."""
        digest = hashlib.sha256(msgspec.json.encode(self.schema))
        for name, array in sorted(to_arrays(self._model).items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return {
            "version": VERSION,
            "model": digest.hexdigest(),
            "particles": self._num_particles,
            "seed": self._seed,
        }

    def _begin(self, place: int) -> State:
        if place >= len(self._keys):  # a key does not depend on how many there are
            keys = jax.random.split(jax.random.key(self._seed), max(16, 2 * place))
            self._keys = np.asarray(jax.random.key_data(keys))
        return self._begin_program(self._keys[place])

    def _take(self, state: State, step: RowStep) -> tuple[State, Rows]:
        following, packed = self._step_program(state, step.values, step.mask, step.inputs)
        return following, self._unpacked(np.asarray(packed, np.float64))

    @cached_property
    def _begin_program(self) -> Callable[..., State]:
        return jax.jit(self._plain.begin)

    @cached_property
    def _step_program(self) -> Callable[..., tuple[State, jax.Array]]:
        """One compiled program, whose results are one array: fetching many would take longer than computing them."""

        def step(state: State, x: jax.Array, mask: jax.Array, inputs: jax.Array | None) -> tuple[State, jax.Array]:
            given = None if inputs is None else inputs.astype(self._dtype)
            following, made = self._plain.step(state, x.astype(self._dtype), mask, given)
            return following, jnp.concatenate([jnp.ravel(made[part]).astype(self._dtype) for part in self._parts])

        return jax.jit(step, compiler_options=compiler_options())

    @cached_property
    def _places(self) -> dict[str, tuple[int, int, tuple[int, ...]]]:
        """Where each part is in the packed results, and its shape."""
        dim, width = len(self.schema.values), len(self.schema.input_columns)
        state = jax.eval_shape(self._plain.begin, jax.ShapeDtypeStruct((2,), jnp.uint32))
        inputs = jax.ShapeDtypeStruct((width,), self._dtype) if width else None
        x, mask = jax.ShapeDtypeStruct((dim,), self._dtype), jax.ShapeDtypeStruct((dim,), jnp.bool_)
        made = jax.eval_shape(self._plain.step, state, x, mask, inputs)[1]
        ends = np.cumsum([made[part].size for part in self._parts]).tolist()
        return {
            part: (begin, end, made[part].shape)
            for part, begin, end in zip(self._parts, [0, *ends], ends, strict=False)
        }

    def _unpacked(self, packed: np.ndarray) -> Rows:
        found = {part: packed[begin:end].reshape(shape) for part, (begin, end, shape) in self._places.items()}
        return Rows(**(dict.fromkeys(Rows._fields) | found))  # pyright: ignore[reportArgumentType]

    def _scored(self, row: Mapping[str, Any], found: Rows, mask: np.ndarray) -> ScoredRow:
        schema, p = self.schema, None
        if self._calibration is not None:
            p = float(self._calibration.p_values(np.asarray(found.surprise)[None], self._ties.random())[0])
        return ScoredRow(
            schema=schema,
            quantiles=self.quantiles,
            id=None if schema.id is None else row[schema.id],
            time=None if schema.time_column is None else row[schema.time_column],
            log_likelihood=float(found.log_likelihood) - float(self._costs @ mask),
            p_value=p,
            alarm=None if p is None else p <= self.rate,
            found=found,
        )
