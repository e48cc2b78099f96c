"""A split: sequences, and what belongs to each of them."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import SupportsIndex, overload

import numpy as np
from jaxtyping import Bool, Int64, Shaped

from fivo.data.columns import Column, check_values
from fivo.data.frames import Frames, frozen
from fivo.errors import InputError

SPLITS = ("train", "valid", "test")
"""The splits that every dataset has."""
ALL_SPLITS = ("train", "valid", "calibrate", "test")
"""With the fourth split that a dataset may have, in order of time."""
Masks = tuple[Bool[np.ndarray, "_time _dimension"], ...]
Inputs = tuple[Shaped[np.ndarray, "_time _inputs"], ...]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Split(Sequence[np.ndarray]):
    """The sequences of a split: `split[i]` are the frames `[T, D]` of one, and a slice is a smaller split.

    Args:
        sequences: frames `[T, D]` of each sequence, on the model's scale; a missing entry holds 0.
        masks: `[T, D]` of each sequence, true where an entry was observed; None if all were.
        inputs: `[T, U]` of each sequence: known quantities that are not modelled; None if there are none.
        starts: the first step of each sequence that belongs to this split; the steps before it belong to an earlier
            split and are context. None if there is no context. The score of a sequence is log p(x_s:T | x_1:s-1), which
            is log p(x_1:T) - log p(x_1:s-1) and, for a filter, the sum of its `log_increments` from step `starts[i]`
            on; its number of steps is `T - starts[i]` (`scored_lengths`).
    """

    sequences: tuple[Frames, ...]
    masks: Masks | None = None
    inputs: Inputs | None = None
    starts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for what, parts in (("masks", self.masks), ("inputs", self.inputs), ("starts", self.starts)):
            if parts is not None and len(parts) != len(self.sequences):
                raise InputError(
                    f"a split must have one of its {what} for each of its {len(self.sequences)} sequences, "
                    f"got {len(parts)}."
                )

    def __len__(self) -> int:
        return len(self.sequences)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.sequences)

    @overload
    def __getitem__(self, index: SupportsIndex) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> "Split": ...
    def __getitem__(self, index: SupportsIndex | slice) -> "np.ndarray | Split":
        if not isinstance(index, slice):
            return self.sequences[index]
        return self.take(range(len(self))[index])

    def take(self, indices: Sequence[int]) -> "Split":
        """Choose sequences, with what belongs to each of them.

        Args:
            indices: which sequences, in the order wanted.

        Returns:
            A split of these sequences.
        """

        def chosen(parts: tuple) -> tuple:
            return tuple(parts[int(index)] for index in indices)

        return Split(
            chosen(self.sequences),
            None if self.masks is None else chosen(self.masks),
            None if self.inputs is None else chosen(self.inputs),
            None if self.starts is None else chosen(self.starts),
        )

    def __repr__(self) -> str:
        sequences = f"{len(self):,} {'sequence' if len(self) == 1 else 'sequences'}"
        parts = [name for name in ("masks", "inputs", "starts") if getattr(self, name) is not None]
        return f"Split({sequences}, {int(self.lengths.sum()):,} frames{''.join(f', {part}' for part in parts)})"

    @property
    def lengths(self) -> Int64[np.ndarray, " _sequences"]:
        """T of every sequence, context included."""
        return np.array([len(sequence) for sequence in self.sequences], dtype=np.int64)

    @property
    def scored_lengths(self) -> Int64[np.ndarray, " _sequences"]:
        """T of every sequence, without its context."""
        return self.lengths if self.starts is None else self.lengths - np.array(self.starts, dtype=np.int64)


def checked_split(split: Split, columns: Sequence[Column], input_columns: Sequence[Column], where: str) -> Split:
    """A split whose frames, masks, inputs and starts fit each other and their columns, read-only.

    Missing entries become 0, and masks in which nothing is missing, and starts that are all 0, become None.
    """
    dtype = np.dtype(np.uint8 if all(column.kind == "binary" for column in columns) else np.float32)
    frames, masks = [], []
    for index, x in enumerate(split):
        x = _checked_shape(x, len(columns), f"{where} {index}")
        mask = None if split.masks is None else _checked_mask(split.masks[index], x, f"{where} {index}")
        if mask is not None and not mask.all():
            x = np.where(mask, x, np.zeros((), x.dtype))
        check_values(columns, x, mask, f"{where} {index}")
        frames.append(frozen(x, dtype))
        if dtype == np.float32 and not np.isfinite(frames[-1]).all():
            raise InputError(f"{where} {index} holds a number that is too large for single precision; rescale it.")
        masks.append(mask)
    starts = split.starts if split.starts is not None and any(split.starts) else None
    for index, start in enumerate(starts or ()):
        if not 0 <= start < len(frames[index]):
            raise InputError(
                f"{where} {index} must be scored from one of its {len(frames[index])} steps on, got step {start}."
            )
    complete = all(mask is None or mask.all() for mask in masks)
    inputs = _checked_inputs(split, input_columns, where)
    return Split(tuple(frames), None if complete else tuple(masks), inputs, starts)


def _checked_inputs(split: Split, columns: Sequence[Column], where: str) -> Inputs | None:
    if not len(split):
        return None
    if (split.inputs is None) != (not columns):
        raise InputError(
            f"every {where} must have inputs if there are columns for them, and none otherwise, got "
            f"{len(columns)} columns and {'no' if split.inputs is None else 'some'} inputs."
        )
    checked = []
    for index, given in enumerate(split.inputs or ()):
        u = _checked_shape(given, len(columns), f"the inputs of {where} {index}")
        if len(u) != len(split[index]):
            raise InputError(f"the inputs of {where} {index} must have its {len(split[index])} steps, got {len(u)}.")
        checked.append(frozen(u, np.dtype(np.float32)))
        if not np.isfinite(checked[-1]).all():
            raise InputError(f"the inputs of {where} {index} must be finite numbers; fill in what is missing.")
    return tuple(checked) if columns else None


def _checked_shape(x: np.ndarray, width: int, where: str) -> np.ndarray:
    array = np.asarray(x)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{where} is {array.dtype} of shape {list(array.shape)}, but numbers of shape [time, dimension] are needed."
        )
    if not array.size:
        raise InputError(f"{where} is empty; remove it or give it at least one frame.")
    if array.shape[1] != width:
        raise InputError(f"{where} has {array.shape[1]} columns, but {width} are needed.")
    return array


def _checked_mask(mask: np.ndarray, x: np.ndarray, where: str) -> np.ndarray:
    array = np.asarray(mask)
    if array.dtype != bool or array.shape != x.shape:
        raise InputError(
            f"the mask of {where} must be booleans of shape {list(x.shape)}, got {array.dtype} of {list(array.shape)}."
        )
    return frozen(array, array.dtype)
