"""A few padded lengths for sequences of many lengths: few shapes to compile, little padding to compute."""

import numpy as np
from jaxtyping import Int

from fivo.errors import InputError

Lengths = Int[np.ndarray, " sequences"]

WASTE = 0.12
MAX_BUCKETS = 16
_MAX_CANDIDATES = 512
_TRIAL_EPOCHS = 16


def choose_padded_lengths(lengths: Lengths, batch_size: int) -> tuple[int, ...]:
    """Choose the fewest padded lengths that keep the padding at 12 % of the frames.

    Args:
        lengths: Of the sequences.
        batch_size: Sequences per batch.

    Returns:
        At most 16 lengths, ascending; when even those waste more, the ones that waste least.
    """
    lengths = checked_lengths(lengths)
    choices: dict[tuple[int, ...], float] = {}
    for count in range(1, MAX_BUCKETS + 1):
        buckets = best_buckets(lengths, count)
        choices[buckets] = expected_waste(lengths, buckets, batch_size)
        if choices[buckets] <= WASTE or len(buckets) < count:
            break
    good = [buckets for buckets, waste in choices.items() if waste <= WASTE]
    return good[0] if good else min(choices, key=lambda buckets: choices[buckets])


def best_buckets(lengths: Lengths, count: int) -> tuple[int, ...]:
    """The `count` padded lengths (fewer, if there are not that many lengths) that add the least padding.

    Dynamic programming over the distinct lengths: a bucket ends at one of them, starts above the end of the one before,
    and costs its padded frames.
    """
    values = np.unique(lengths)
    if len(values) > _MAX_CANDIDATES:
        values = values[np.linspace(0, len(values) - 1, _MAX_CANDIDATES).round().astype(int)]
    repeats = np.bincount(np.searchsorted(values, lengths), minlength=len(values))
    before = np.concatenate([[0], np.cumsum(repeats)])
    ends = np.concatenate([[0], values])
    # padded[i, j]: frames when all sequences above ends[i] and up to ends[j] are padded to ends[j]
    padded = np.where(np.tri(len(ends), k=-1, dtype=bool).T, ends * (before[None, :] - before[:, None]), np.inf)
    cost = padded[0]
    origins = []
    for _ in range(min(count, len(values)) - 1):
        extended = cost[:, None] + padded
        origins.append(extended.argmin(axis=0))
        cost = extended.min(axis=0)
    cuts = [len(values)]
    for origin in reversed(origins):
        cuts.append(int(origin[cuts[-1]]))
    return tuple(int(ends[cut]) for cut in reversed(cuts))


def bucket_of(lengths: Lengths, padded_lengths: tuple[int, ...]) -> Int[np.ndarray, " sequences"]:
    """Which padded length each sequence needs."""
    return np.searchsorted(padded_lengths, lengths)


def expected_waste(lengths: Lengths, padded_lengths: tuple[int, ...], batch_size: int) -> float:
    """Padded frames over true frames, minus one, in batches where a bucket's left-over sequences move up to the next.

    Depends only on how many sequences of each bucket take part in an epoch, so it is averaged over random omissions.
    """
    if len(lengths) < batch_size:
        return float(padded_lengths[-1] * len(lengths) / lengths.sum() - 1)
    generator = np.random.Philox(np.random.SeedSequence(0))
    padded = true = 0
    for _ in range(_TRIAL_EPOCHS):
        kept = np.argsort(generator.random_raw(len(lengths)))[: len(lengths) // batch_size * batch_size]
        sizes = np.bincount(bucket_of(lengths[kept], padded_lengths), minlength=len(padded_lengths))
        batches = np.diff(np.cumsum(sizes) // batch_size, prepend=0)
        padded += batch_size * int(batches @ np.array(padded_lengths))
        true += int(lengths[kept].sum())
    return padded / true - 1


def checked_lengths(lengths: Lengths) -> Lengths:
    """`lengths` as integers, at least one of them and none below 1."""
    array = np.asarray(lengths)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or array.min() < 1:
        raise InputError(
            f"lengths of shape {list(array.shape)} and type {array.dtype} were given; positive integers are needed."
        )
    return array.astype(np.int64)
