"""Padded batches of sequences of different lengths."""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Int, Shaped

from fivo.errors import InputError


class Batch(eqx.Module):
    """Sequences x_1:T_b padded to one length T.

    `mask` is true where an entry was observed; `None` says that every entry of every frame was, which is
    also the faster program. What stands behind a sequence's end or in a missing entry is never read.
    """

    observations: Shaped[Array, "batch time dim"]
    lengths: Int[Array, " batch"]
    mask: Bool[Array, "batch time dim"] | None = None

    def __check_init__(self) -> None:
        if isinstance(self.lengths, Tracer) or not isinstance(self.lengths, jax.Array | np.ndarray):
            return
        lengths, time = np.asarray(self.lengths), self.observations.shape[1]
        if lengths.dtype.kind not in "iu" or (lengths < 0).any() or (lengths > time).any():
            raise InputError(
                f"lengths must be whole numbers from 0 to the {time} steps that the observations have, got "
                f"{lengths.dtype} values from {lengths.min()} to {lengths.max()}."
            )

    @classmethod
    def from_sequences(
        cls,
        sequences: Sequence | np.ndarray | Array,
        *,
        mask: Sequence | np.ndarray | Array | None = None,
        missing: Literal["nan"] | None = None,
        pad_to: int | None = None,
    ) -> "Batch":
        """Pad arrays [T_i, D] to a batch.

        Missing entries are declared by `mask` (one boolean array per sequence, shaped like it) or, with
        `missing="nan"`, are those that are NaN.
        """
        if isinstance(sequences, np.ndarray | jax.Array) and sequences.ndim != 3:
            raise InputError(
                f"got one array of shape {tuple(sequences.shape)} where a list of [time, dim] arrays was expected; "
                "wrap a single sequence as [x]."
            )
        arrays = [_as_frames(x, f"sequence {i}") for i, x in enumerate(sequences)]
        if not arrays:
            raise InputError("got no sequences where at least one was expected; pass a non-empty list.")
        if missing not in (None, "nan"):
            raise InputError(f"got missing={missing!r} where None or 'nan' was expected.")
        if missing == "nan" and mask is not None:
            raise InputError("got both missing='nan' and mask=, expected one of them; drop one.")
        dim = arrays[0].shape[1]
        for i, x in enumerate(arrays):
            if x.shape[1] != dim:
                raise InputError(
                    f"sequence {i} has {x.shape[1]} entries per frame where sequence 0 has {dim}; "
                    "all frames must have one size."
                )
        masks = _entry_masks(arrays, mask, missing)
        longest = max(len(x) for x in arrays)
        time = longest if pad_to is None else pad_to
        if time < longest:
            raise InputError(
                f"got pad_to={time} where the longest sequence has {longest} frames; pad to at least that."
            )

        dtype = _representable(np.result_type(*arrays), arrays, masks)
        observations = np.zeros((len(arrays), time, dim), dtype)
        padded_mask = None if masks is None else np.zeros((len(arrays), time, dim), bool)
        for i, x in enumerate(arrays):
            observations[i, : len(x)] = x if masks is None else np.where(masks[i], x, 0)
            if padded_mask is not None and masks is not None:
                padded_mask[i, : len(x)] = masks[i]
        return cls(
            jnp.asarray(observations),
            jnp.asarray([len(x) for x in arrays], dtype=jnp.int32),
            None if padded_mask is None else jnp.asarray(padded_mask),
        )


def _representable(dtype: np.dtype, arrays: list[np.ndarray], masks: list[np.ndarray] | None) -> np.dtype:
    """The type that JAX stores numbers of `dtype` as; refuses numbers that it would change."""
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
        raise InputError(f"{name} is not a rectangular array of numbers; expected an array of shape [time, dim].")
    if array.ndim != 2:
        raise InputError(
            f"{name} has shape {array.shape} where [time, dim] was expected; "
            "give one-dimensional series a last axis with x[:, None]."
        )
    if len(array) == 0:
        raise InputError(f"{name} has no frames; drop empty sequences.")
    if array.dtype.kind in "bu":
        return array.astype(np.float32)
    return array


def _entry_masks(
    arrays: list[np.ndarray], mask: Sequence | np.ndarray | Array | None, missing: str | None
) -> list[np.ndarray] | None:
    if mask is not None:
        masks = [np.asarray(m, bool) for m in mask]
        if len(masks) != len(arrays) or any(m.shape != x.shape for m, x in zip(masks, arrays, strict=True)):
            raise InputError("the mask's shapes differ from the sequences'; give one boolean array per sequence.")
    elif missing == "nan":
        masks = [~np.isnan(x) for x in arrays]
    else:
        masks = None
    for i, x in enumerate(arrays):
        seen = x if masks is None else x[masks[i]]
        if x.dtype.kind == "f" and not np.isfinite(seen).all():
            what = "NaN" if np.isnan(seen).any() else "an infinite value"
            raise InputError(
                f"sequence {i} holds {what}; mark missing entries with missing='nan' or mask=, and repair the others."
            )
    return masks
