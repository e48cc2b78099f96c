"""The order in which training sees the sequences: a pure function of the position."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from fivo.data.buckets import Lengths, bucket_of, checked_lengths, choose_padded_lengths
from fivo.errors import InputError


class Slots(NamedTuple):
    """Which sequences make a batch.

    Args:
        indices: Of the sequences; -1 is an empty slot.
        padded_length: The length that all are padded to.
    """

    indices: Int[np.ndarray, " slots"]
    padded_length: int


class Batches:
    """Shuffled batches of sequences of similar length; `batches[k]` is batch `k` of an endless run, for any `k >= 0`.

    An epoch is a new seeded shuffle: all sequences appear exactly once, except for a random few, fewer than
    `batch_size`, that do not fill a batch. Each bucket of lengths is cut into batches, and what is left over joins the
    next longer bucket. Since nothing but `k` is remembered, a run is continued by counting on. With fewer sequences
    than `batch_size`, each batch holds all of them, some repeatedly.

    Args:
        lengths: Of the sequences.
        batch_size: Sequences per batch.
        seed: Random seed of the shuffles.
    """

    def __init__(self, lengths: Lengths, batch_size: int, seed: int) -> None:
        if batch_size < 1 or seed < 0:
            raise InputError(
                f"batch size {batch_size} and seed {seed} were given; the size must be 1 or more, the seed 0 or more."
            )
        self.lengths = checked_lengths(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.padded_lengths = choose_padded_lengths(self.lengths, batch_size)
        self._plan: tuple[int, list[Slots]] = (-1, [])

    @property
    def batches_per_epoch(self) -> int:
        """Batches before the next shuffle."""
        return max(1, len(self.lengths) // self.batch_size)

    def __getitem__(self, k: int) -> Slots:
        if k < 0:
            raise IndexError(f"batch {k} was asked for; batches are counted from 0.")
        epoch, position = divmod(k, self.batches_per_epoch)
        known, plan = self._plan
        if known != epoch:
            plan = self._epoch(epoch)
            self._plan = (epoch, plan)
        return plan[position]

    def waste(self, epochs: int) -> float:
        """How much is padding.

        Args:
            epochs: How many epochs to look at, from the first.

        Returns:
            Padded frames over true frames, minus one.
        """
        plan = [self[k] for k in range(epochs * self.batches_per_epoch)]
        true = sum(int(self.lengths[slots.indices].sum()) for slots in plan)
        return sum(slots.padded_length * self.batch_size for slots in plan) / true - 1

    def _epoch(self, epoch: int) -> list[Slots]:
        # Raw bits and a stable sort: unlike Generator.permutation, numpy promises these never to change.
        generator = np.random.Philox(np.random.SeedSequence([self.seed, epoch]))
        order = np.argsort(generator.random_raw(len(self.lengths)), kind="stable")
        if len(order) < self.batch_size:
            return [Slots(np.resize(order, self.batch_size), self.padded_lengths[-1])]
        kept = order[: self.batches_per_epoch * self.batch_size]
        buckets = bucket_of(self.lengths[kept], self.padded_lengths)
        plan: list[Slots] = []
        waiting = kept[:0]
        for bucket, padded_length in enumerate(self.padded_lengths):
            waiting = np.concatenate([waiting, kept[buckets == bucket]])
            full = len(waiting) // self.batch_size * self.batch_size
            plan += [Slots(indices, padded_length) for indices in waiting[:full].reshape(-1, self.batch_size)]
            waiting = waiting[full:]
        return [plan[position] for position in np.argsort(generator.random_raw(len(plan)), kind="stable")]


def evaluation_chunks(
    lengths: Lengths, chunk: int, padded_lengths: tuple[int, ...] | None = None, *, multiple: int = 1
) -> list[Slots]:
    """Cut sequences into chunks that cover each exactly once.

    The padded lengths do not depend on `chunk`, so neither does what a sequence is padded to.

    Args:
        lengths: Of the sequences.
        chunk: The most slots that a chunk may have.
        padded_lengths: The lengths to pad to, extended when a sequence is longer; chosen by default.
        multiple: What the number of slots of a chunk must be a multiple of, rounding up.

    Returns:
        The chunks; those padded to one length have one shape.
    """
    lengths = checked_lengths(lengths)
    if chunk < 1:
        raise InputError(f"chunks of {chunk} sequences were asked for; give a positive number.")
    buckets = padded_lengths or choose_padded_lengths(lengths, 1)
    if buckets[-1] < lengths.max():
        buckets = (*buckets, int(lengths.max()))
    which = bucket_of(lengths, buckets)
    chunks: list[Slots] = []
    for bucket, padded_length in enumerate(buckets):
        members = np.flatnonzero(which == bucket)
        if not len(members):
            continue
        count = -(-len(members) // chunk)
        slots = np.full((count, -(-len(members) // (count * multiple)) * multiple), -1)
        slots.flat[: len(members)] = members
        chunks += [Slots(indices, padded_length) for indices in slots]
    return chunks
