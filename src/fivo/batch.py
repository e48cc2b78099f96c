"""Padded batches of sequences of different lengths, with their missing entries and known inputs."""

from collections.abc import Callable
from collections.abc import Sequence as Sized
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Shaped

from fivo.errors import InputError

__all__ = ["Batch", "Sequence", "as_batch", "over_sequences"]


class Sequence(eqx.Module):
    """One sequence, as a model's `encode` sees it. Missing entries and the padding past its end hold zeros.

    Args:
        observations: x_1:T [time, dim].
        length: how many of the steps are the sequence's own; the others are padding.
        mask: [time, dim], true where an entry was observed; None where every entry was.
        inputs: u_1:T [time, input], known quantities that are not modelled, such as controls, covariates or attributes
            repeated along time; None if there are none.
    """

    observations: Shaped[Array, "time dim"]
    length: Int[Array, ""]
    mask: Bool[Array, "time dim"] | None = None
    inputs: Float[Array, "time input"] | None = None


class Batch(eqx.Module):
    """Sequences x_1:T_b padded to one length T.

    Args:
        observations: x [batch, time, dim].
        lengths: T_b [batch], the number of steps of each sequence.
        mask: [batch, time, dim], true where an entry was observed. None says that every entry was, and is faster.
        inputs: u [batch, time, input], known quantities that are not modelled; None if there are none.

    Values past a sequence's end, or at missing entries, are never read.
    """

    observations: Shaped[Array, "batch time dim"]
    lengths: Int[Array, " batch"]
    mask: Bool[Array, "batch time dim"] | None = None
    inputs: Float[Array, "batch time input"] | None = None

    def __check_init__(self) -> None:
        arrays = (self.observations, self.lengths, self.mask, self.inputs)
        if not all(array is None or isinstance(array, jax.Array | np.ndarray) for array in arrays):
            return  # what JAX makes of it on the way through its transformations
        shape = self.observations.shape
        if len(shape) != 3:
            raise InputError(f"observations must have shape [batch, time, dim], got {shape}.")
        if self.lengths.shape != shape[:1]:
            raise InputError(f"lengths must have shape {shape[:1]}, one for each sequence, got {self.lengths.shape}.")
        if self.mask is not None and self.mask.shape != shape:
            raise InputError(f"mask must have shape {shape}, as the observations have, got {self.mask.shape}.")
        if self.inputs is not None and (self.inputs.ndim != 3 or self.inputs.shape[:2] != shape[:2]):
            raise InputError(
                f"inputs must have shape ({shape[0]}, {shape[1]}, number of inputs), got {self.inputs.shape}."
            )
        if isinstance(self.lengths, Tracer) or not getattr(self.lengths, "is_fully_addressable", True):
            return  # no numbers yet, or some of them in another process
        lengths, time = np.asarray(self.lengths), self.observations.shape[1]
        if lengths.dtype.kind not in "iu" or (lengths < 0).any() or (lengths > time).any():
            raise InputError(
                f"lengths must be whole numbers from 0 to the {time} steps that the observations have, got "
                f"{lengths.dtype} values from {lengths.min()} to {lengths.max()}."
            )

    @classmethod
    def from_sequences(
        cls,
        sequences: Sized | np.ndarray | Array,
        *,
        inputs: Sized | np.ndarray | Array | None = None,
        mask: Sized | np.ndarray | Array | None = None,
        missing: Literal["nan"] | None = None,
        pad_to: int | None = None,
    ) -> "Batch":
        """Pad arrays of different lengths to a batch.

        Args:
            sequences: one array [T_i, dim] per sequence.
            inputs: one array [T_i, input] per sequence of what is known at each step and not modelled.
            mask: one boolean array [T_i, dim] per sequence, true where an entry was observed.
            missing: "nan" if missing entries are those that are NaN.
            pad_to: the length to pad to; by default that of the longest sequence.

        Returns:
            The batch, with a mask only if `mask` or `missing` was given.
        """
        if isinstance(sequences, np.ndarray | jax.Array) and sequences.ndim != 3:
            raise InputError(
                f"sequences must be a list of [time, dim] arrays, got one array of shape {tuple(sequences.shape)}; "
                "wrap a single sequence as [x]."
            )
        if isinstance(sequences, jax.Array) and not isinstance(sequences, Tracer):
            sequences = np.asarray(sequences)  # iterating it within a traced function would trace its parts
        arrays = [_as_frames(x, f"sequence {i}") for i, x in enumerate(sequences)]
        if not arrays:
            raise InputError("sequences must hold at least one array, got none.")
        if missing not in (None, "nan"):
            raise InputError(f"missing must be None or 'nan', got {missing!r:.60}.")
        if missing == "nan" and mask is not None:
            raise InputError("missing entries must be given by missing='nan' or by mask=, got both.")
        _check_widths(arrays, "sequence")
        masks = _entry_masks(arrays, mask, missing)
        known = _checked_inputs(arrays, inputs)
        longest = max(len(x) for x in arrays)
        time = longest if pad_to is None else pad_to
        if time < longest:
            raise InputError(f"pad_to must be at least {longest}, the length of the longest sequence, got {time}.")
        dtype = _representable(arrays, masks)
        shown = arrays if masks is None else [np.where(m, x, 0) for m, x in zip(masks, arrays, strict=True)]
        return cls(
            jnp.asarray(_padded(shown, time, dtype)),
            jnp.asarray([len(x) for x in arrays], dtype=jnp.int32),
            None if masks is None else jnp.asarray(_padded(masks, time, np.dtype(bool))),
            None if known is None else jnp.asarray(_padded(known, time, _representable(known, None))),
        )


def over_sequences(function: Callable[..., Any], batch: Batch, *others: Any, out_axes: Any = 0) -> Any:
    """Call `function(sequence, *others)` for every sequence of a batch, as one mapped computation.

    Args:
        function: takes a `Sequence` and, if given, what belongs to it.
        batch: the sequences.
        others: what belongs to the sequences, each with a first axis [batch].
        out_axes: where the axis of sequences goes in the result, as for `jax.vmap`.

    Returns:
        What the function returned for each sequence, stacked along `out_axes`.
    """

    def one(x: Array, length: Array, mask: Array | None, inputs: Array | None, *others: Any) -> Any:
        return function(Sequence(x, length, mask, inputs), *others)

    mapped = jax.vmap(one, out_axes=out_axes)
    return mapped(batch.observations, batch.lengths, batch.mask, batch.inputs, *others)


def as_batch(x: Any) -> Batch:
    """Make a batch from anything that represents sequences.

    Args:
        x: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of arrays [time, dim].

    Returns:
        The batch; a single sequence becomes a batch of one.
    """
    if isinstance(x, Batch):
        return x
    is_array = isinstance(x, np.ndarray | jax.Array)
    if is_array and x.ndim in (2, 3):
        x = x[None] if x.ndim == 2 else x
        if isinstance(x, Tracer):
            return Batch(x, jnp.full((x.shape[0],), x.shape[1], jnp.int32))
        return Batch.from_sequences(x)
    if isinstance(x, list | tuple) and len(x):
        return Batch.from_sequences(x)
    got = f"an array of shape {x.shape}" if is_array else type(x).__name__
    raise InputError(
        "sequences must be a Batch, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays, got "
        f"{'an empty ' if isinstance(x, list | tuple) else ''}{got}."
    )


def _padded(arrays: list[np.ndarray], time: int, dtype: np.dtype) -> np.ndarray:
    whole = np.zeros((len(arrays), time, arrays[0].shape[1]), dtype)
    for i, x in enumerate(arrays):
        whole[i, : len(x)] = x
    return whole


def _check_widths(arrays: list[np.ndarray], what: str) -> None:
    for i, x in enumerate(arrays):
        if x.shape[1] != arrays[0].shape[1]:
            raise InputError(
                f"all frames must have the same size, but {what} 0 has {arrays[0].shape[1]} entries per frame and "
                f"{what} {i} has {x.shape[1]}."
            )


def _representable(arrays: list[np.ndarray], masks: list[np.ndarray] | None) -> np.dtype:
    """The type that JAX stores the numbers as; refuses numbers that it would change."""
    dtype = np.result_type(*arrays)
    stored = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    if stored == dtype:
        return dtype
    limits = np.iinfo(stored) if stored.kind in "iu" else np.finfo(stored)
    for i, x in enumerate(arrays):
        seen = x if masks is None else x[masks[i]]
        if seen.size and (seen.max() > limits.max or seen.min() < limits.min):
            worst = seen.flat[np.argmax(np.abs(seen.astype(np.float64)))]
            raise InputError(
                f"values must fit into {stored}, but sequence {i} holds {worst}; rescale the data, or enable 64-bit "
                "numbers with jax.config.update('jax_enable_x64', True)."
            )
    return stored


def _as_frames(x: object, name: str) -> np.ndarray:
    try:
        array = np.asarray(x)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a rectangular array of numbers of shape [time, dim], got {x!r:.60}.")
    if array.ndim != 2:
        raise InputError(
            f"{name} must have shape [time, dim], got {array.shape}; give one-dimensional series a last axis with "
            "x[:, None]."
        )
    if len(array) == 0:
        raise InputError(f"{name} must have at least one frame, got none; drop empty sequences.")
    if array.dtype.kind in "bu":
        return array.astype(np.float32)
    return array


def _checked_inputs(arrays: list[np.ndarray], inputs: Sized | np.ndarray | Array | None) -> list[np.ndarray] | None:
    if inputs is None:
        return None
    known = [_as_frames(u, f"the inputs of sequence {i}") for i, u in enumerate(inputs)]
    known = [u.astype(np.float32) if u.dtype.kind == "i" else u for u in known]
    if len(known) != len(arrays) or any(len(u) != len(x) for u, x in zip(known, arrays, strict=True)):
        raise InputError(
            "inputs must have one array [time, input] per sequence, as long as it, got lengths "
            f"{[len(u) for u in known][:8]} for sequences of {[len(x) for x in arrays][:8]} steps."
        )
    _check_widths(known, "the inputs of sequence")
    for i, u in enumerate(known):
        if not np.isfinite(u).all():
            raise InputError(f"inputs must be finite numbers, but those of sequence {i} hold NaN or infinite values.")
    return known


def _entry_masks(
    arrays: list[np.ndarray], mask: Sized | np.ndarray | Array | None, missing: str | None
) -> list[np.ndarray] | None:
    if mask is not None:
        masks = [np.asarray(m, bool) for m in mask]
        if len(masks) != len(arrays) or any(m.shape != x.shape for m, x in zip(masks, arrays, strict=True)):
            raise InputError("mask must hold one boolean array per sequence, of the sequence's own shape.")
    elif missing == "nan":
        masks = [~np.isnan(x) for x in arrays]
    else:
        masks = None
    for i, x in enumerate(arrays):
        seen = x if masks is None else x[masks[i]]
        if x.dtype.kind == "f" and not np.isfinite(seen).all():
            what = "NaN" if np.isnan(seen).any() else "an infinite value"
            raise InputError(
                f"observations must be finite, but sequence {i} holds {what}; mark missing entries with missing='nan' "
                "or mask=."
            )
    return masks
