"""What every reader returns: sequences of frames in three splits, and what their columns are."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from fivo.data.columns import MOST_COLUMNS, Column, check_names, moments, scaling_of
from fivo.data.describing import describe
from fivo.data.fingerprint import fingerprint
from fivo.data.foreign import shown
from fivo.data.frames import Frames, checked_frames, checked_positive
from fivo.data.sound import Music, Scaling, Speech
from fivo.data.splits import ALL_SPLITS, SPLITS, Split, checked_split
from fivo.data.tables.schema import TableSchema
from fivo.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Sequences of frames, split into train, valid and test. Make one with `from_arrays`, `pianoroll` or `waveform`.

    Args:
        name: what it is called.
        splits: the `Split`, or just the frames `[T, D]` of every sequence, of train, valid and test. Numbers are on the
            model's scale (see `Column`), arrays are read-only: uint8 if all columns are binary, else float32. The test
            split may be empty, unless this is music or speech. There may be a split `calibrate` too.
        columns: what the D entries of a frame are.
        input_columns: what the U entries of `Split.inputs` are.
        sound: facts that only music and speech have; None for other data. These have no masks and no inputs.
        table: how the table was read that this is of, so that another one can be (`apply_schema`); None for other data.
    """

    name: str
    splits: Mapping[str, Split]
    columns: tuple[Column, ...]
    input_columns: tuple[Column, ...] = ()
    sound: Music | Speech | None = None
    table: TableSchema | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "input_columns", tuple(self.input_columns))
        if not 1 <= len(self.columns) <= MOST_COLUMNS:
            raise InputError(f"{self.name}: a frame must have 1 to {MOST_COLUMNS:,} columns, got {len(self.columns)}.")
        if not isinstance(self.sound, Speech):
            check_names(self.columns, f"{self.name}: the columns")
        check_names(self.input_columns, f"{self.name}: the inputs")
        if not set(SPLITS) <= set(self.splits) <= set(SPLITS if self.sound is not None else ALL_SPLITS):
            raise InputError(
                f"{self.name}: found the splits {sorted(map(str, self.splits))}, but train, valid and test are needed."
            )
        checked: dict[str, Split] = {}
        for split in (name for name in ALL_SPLITS if name in self.splits):
            given = self.splits[split]
            if not len(given) and (split != "test" or self.sound is not None):
                raise InputError(f"{self.name}: the {split} split is empty; give it at least one sequence.")
            checked[split] = self._checked(given, f"{self.name}: {split} sequence")
        object.__setattr__(self, "splits", MappingProxyType(checked))
        if checked["train"].masks is not None:
            self._check_observed(checked["train"].masks)

    def _checked(self, given: Sequence[np.ndarray], where: str) -> Split:
        split = given if isinstance(given, Split) else Split(tuple(given))
        if self.sound is None:
            return checked_split(split, self.columns, self.input_columns, where)
        if split.masks or split.inputs or split.starts or self.input_columns:
            raise InputError(f"{self.name}: music and speech have no masks or inputs; use `Dataset.from_arrays`.")
        kind = "pianoroll" if isinstance(self.sound, Music) else "waveform"
        width = len(self.columns)
        return Split(tuple(checked_frames(x, kind, width, f"{where} {i}") for i, x in enumerate(split)))

    def _check_observed(self, masks: Sequence[np.ndarray]) -> None:
        seen = np.any([mask.any(axis=0) for mask in masks], axis=0)
        if not seen.all():
            name = self.columns[int(np.argmin(seen))].name
            raise InputError(
                f"{self.name}: column {shown(name)} must have a value in train, but all are missing; leave it out."
            )

    def __repr__(self) -> str:
        return describe(self)

    @classmethod
    def pianoroll(
        cls,
        name: str,
        splits: Mapping[str, Sequence[Frames]],
        steps_per_quarter: float | int,
        step_seconds: float | int | None = None,
    ) -> "Dataset":
        """Make a dataset of music.

        Args:
            name: What it is called.
            splits: Sequences by split: arrays `[T, 88]` of zeros and ones, column `j` being MIDI note `21 + j`; they
                are kept as uint8.
            steps_per_quarter: Frames per quarter note.
            step_seconds: How long a frame lasts; by default, 120 quarters a minute.

        Returns:
            The dataset.
        """
        checked_positive(steps_per_quarter, f"{name}: `steps_per_quarter`")
        if step_seconds is not None:
            checked_positive(step_seconds, f"{name}: `step_seconds`")
        sound = Music(steps_per_quarter, step_seconds)
        return cls(name, _tuples(splits), sound.columns, sound=sound)

    @classmethod
    def waveform(
        cls,
        name: str,
        splits: Mapping[str, Sequence[Frames]],
        step_seconds: float | int,
        scaling: Scaling | None = None,
    ) -> "Dataset":
        """Make a dataset of recordings.

        Args:
            name: What it is called.
            splits: Sequences by split: frames `[T, D]` of D samples.
            step_seconds: How long a frame lasts.
            scaling: How samples were standardised, if they were.

        Returns:
            The dataset.
        """
        checked_positive(step_seconds, f"{name}: `step_seconds`")
        widths = [np.shape(x)[1] for x in splits.get("train", ()) if np.ndim(x) == 2 and np.shape(x)[1]]
        if widths and widths[0] > MOST_COLUMNS:
            raise InputError(f"{name}: frames have {widths[0]:,} samples, more than {MOST_COLUMNS:,}; cut them.")
        sound = Speech(widths[0] if widths else 1, step_seconds, scaling)
        return cls(name, _tuples(splits), sound.columns, sound=sound)

    @staticmethod
    def from_arrays(
        train: Any,
        valid: Any = None,
        test: Any = None,
        *,
        name: str = "arrays",
        inputs: Any = None,
        mask: Any = None,
        columns: Sequence[str | Column] | None = None,
        kinds: Any = None,
        input_columns: Sequence[str] | None = None,
        standardize: bool = False,
    ) -> "Dataset":
        """A dataset of any numbers.

        Args:
            train: sequences: a list of arrays `[T, D]` of any lengths, an array `[N, T, D]`, or one sequence `[T, D]`.
                Numbers are as they were measured; NaN marks a missing entry.
            valid: like `train`. Left out, it is the last tenth of the training sequences, which train then lacks; with
                fewer than ten sequences it is the last tenth of the steps of each, the others being context (see
                `Split.starts`).
            test: like `train`. Left out, the test split is empty.
            name: what it is called.
            inputs: known quantities that are not modelled: arrays `[T, U]`, as many as sequences, by split
                (`{"train": [...], ...}`), or a list for the training sequences if these are all there are.
            mask: booleans `[T, D]`, true where an entry was observed, given like `inputs`. Where a split has a mask,
                NaN is refused in what it calls observed.
            columns: names of the D columns (by default x0, x1, ...), or `Column`s, whose `shift` and `scale` are then
                applied to the numbers.
            kinds: a kind for all columns, a list with one for each, or a dictionary by name or position. Others are
                guessed from train and valid: `binary` if all values are 0 or 1 (or booleans), `count` if all are whole
                numbers from 0 to 2^24, else `real`. A column is a `category` only when told so; its values are then
                whole numbers from 0.
            input_columns: names of the U inputs, by default u0, u1, ...
            standardize: whether real columns, and inputs that are not just 0 and 1, are shifted and scaled to mean 0
                and deviation 1 over what was observed in train.

        Returns:
            The dataset.
        """
        from fivo.data.arrays import from_arrays

        given = {"train": train, "valid": valid, "test": test}
        return from_arrays(given, name, inputs, mask, columns, kinds, input_columns, standardize)

    @staticmethod
    def from_table(
        table: Any,
        *,
        id: str | None = None,
        time: str | None = None,
        values: Sequence[str] | None = None,
        inputs: Sequence[str] = (),
        static: Sequence[str] = (),
        kinds: Mapping[str, str] = MappingProxyType({}),
        every: Any = None,
        split: str | None = None,
        fractions: Mapping[str, float] | None = None,
        seed: int = 0,
        window: int | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """A dataset of a table: one row for each series and time.

        A column with any number in it is numeric, and text there is refused; it is a category only if no cell is a
        number, or by `kinds`. Real columns and numeric inputs are standardised with the mean and deviation of train.

        Args:
            table: a path for `read_table`, or a pandas, polars or pyarrow frame.
            id: the column that says which series a row belongs to; without it, all rows are one series.
            time: the column of time: numbers, dates or times. Rows are sorted by it within their series; two rows of a
                series with one time are refused. Without it, rows stay in order.
            values: the columns that are modelled; by default all that have no other use. An empty cell is missing.
            inputs: columns that are known and not modelled. A missing one is as it was in the row before, or at the
                beginning of a series the mean of train; categories are one-hot.
            static: columns that are the same in all rows of a series; they become inputs, repeated along time.
            kinds: `real`, `count`, `binary` or `category` by column; others are guessed as `from_arrays` does.
            every: a grid to put rows on, such as "10min" or 0.5; steps without a row are missing. Without it, rows are
                steps, and where time advances irregularly, the time since the row before becomes an input `gap`.
            split: "time" (within each series, the latest rows are held out; the default for fewer than 20 series),
                "series" (whole series are), or a column that says train, valid, calibrate or test. Rows of a later
                split have the earlier rows of their series as context (`Split.starts`).
            fractions: shares of train, valid, calibrate and test; by default 0.8, 0.1, none and 0.1.
            seed: what series are drawn with.
            window: the most steps of a training sequence; longer series are cut into pieces of so many.
            name: what it is called; by default as the file.

        Returns:
            The dataset; `Dataset.table` says how the table was read.
        """
        from fivo.data.tables.learning import from_table

        return from_table(
            table,
            id_column=id,
            time_column=time,
            values=values,
            inputs=inputs,
            static=static,
            kinds=kinds,
            every=every,
            split=split,
            fractions=fractions,
            seed=seed,
            window=window,
            name=name,
        )

    @property
    def kind(self) -> str:
        """`pianoroll`, `waveform`, or `columns` for everything that is not sound."""
        return {Music: "pianoroll", Speech: "waveform"}.get(type(self.sound), "columns")

    @property
    def dimension(self) -> int:
        """D, the number of entries of a frame."""
        return len(self.columns)

    def split(self, name: str) -> Split:
        """The sequences of a split; an empty split is refused.

        Args:
            name: Of the split.

        Returns:
            The sequences, with their masks and inputs.
        """
        if name not in self.splits:
            raise InputError(f"{self.name} has no split {name!r:.40}; use one of {', '.join(SPLITS)}.")
        if not len(self.splits[name]):
            raise InputError(f"{self.name} has no {name} data; give it some, or use another split.")
        return self.splits[name]

    def lengths(self, split: str) -> Int64[np.ndarray, " _sequences"]:
        """T of every sequence of a split, with the context that it may have.

        Args:
            split: Its name.

        Returns:
            The lengths [sequence].
        """
        if split not in self.splits:
            raise InputError(f"{self.name} has no split {split!r}; use one of {', '.join(SPLITS)}.")
        return self.splits[split].lengths

    def scored_lengths(self, split: str) -> Int64[np.ndarray, " _sequences"]:
        """The steps of every sequence that belong to a split, without the context before them.

        Args:
            split: Its name.

        Returns:
            The lengths [sequence].
        """
        return self.split(split).scored_lengths

    @property
    def is_scaled(self) -> bool:
        """Whether densities of the stored numbers differ from those of the raw ones."""
        return any(column.is_scaled for column in self.columns)

    def restore(self, values: Shaped[np.ndarray, "*shape dimension"]) -> Float64[np.ndarray, "*shape dimension"]:
        """Undo the scaling: x * scale + shift. Categories stay symbols.

        Args:
            values: Frames on the model's scale [..., dim].

        Returns:
            Frames as they were measured [..., dim].
        """
        shift, scale = scaling_of(self.columns)
        return np.asarray(values, np.float64) * scale + shift

    def raw_data_offsets(self, split: str) -> Float64[np.ndarray, " _sequences"]:
        """What to add to each sequence's log-density of stored data to have that of the raw data.

        The change of variables costs log scale for every scored entry that was observed; of a waveform, the zeros that
        fill up the last frame are scored too.

        Args:
            split: The split's name.

        Returns:
            An offset in nats for every sequence [sequence].
        """
        part = self.split(split)
        costs = np.log(scaling_of(self.columns)[1])
        if part.masks is None:
            return -costs.sum() * part.scored_lengths.astype(np.float64)
        starts = part.starts or (0,) * len(part)
        return -np.array([m[s:].sum(axis=0) @ costs for m, s in zip(part.masks, starts, strict=True)], np.float64)

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """(sequences, frames) of every split, without the frames that are context."""
        return {name: (len(part), int(part.scored_lengths.sum())) for name, part in self.splits.items()}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content; equal for equal content, whatever file it was read from."""
        return fingerprint(self.kind, self.columns, self.input_columns, self.splits)

    @cached_property
    def train_mean(self) -> Float64[np.ndarray, " dimension"]:
        """Mean of every column over what was observed in the training split."""
        part = self.splits["train"]
        total = sum(sequence.sum(axis=0, dtype=np.float64) for sequence in part)
        seen = part.lengths.sum() if part.masks is None else sum(mask.sum(axis=0) for mask in part.masks)
        return np.asarray(total / seen)

    @cached_property
    def train_deviation(self) -> Float64[np.ndarray, " dimension"]:
        """Standard deviation of every column over what was observed in train; 1 where nothing varies."""
        return moments(self.splits["train"].sequences, self.splits["train"].masks)[1]

    def train_rates(self, index: int) -> Float64[np.ndarray, " _categories"]:
        """How often each category of a column was observed in train.

        Args:
            index: The column's position.

        Returns:
            Shares that sum to one [category].
        """
        part = self.splits["train"]
        counts = np.zeros(len(self.columns[index].categories))
        for i, sequence in enumerate(part):
            seen = sequence[:, index] if part.masks is None else sequence[part.masks[i][:, index], index]
            counts += np.bincount(seen.astype(np.int64), minlength=len(counts))
        return counts / counts.sum()


def _tuples(splits: Mapping[str, Sequence[Frames]]) -> dict[str, Split]:
    return {name: given if isinstance(given, Split) else Split(tuple(given)) for name, given in splits.items()}
