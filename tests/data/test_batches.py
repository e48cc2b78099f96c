"""Batching: every sequence once an epoch, little padding, few shapes, a position that is one number."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivo.data import Batches, choose_padded_lengths, evaluation_chunks, load, pad
from fivo.data.buckets import best_buckets
from fivo.errors import InputError

lengths_of_sets = st.lists(st.integers(1, 300), min_size=1, max_size=60).map(np.array)


@settings(max_examples=60, deadline=None)
@given(lengths_of_sets, st.integers(1, 9), st.integers(0, 5))
def test_an_epoch_holds_every_sequence_once_but_for_a_few(lengths, batch_size, epoch):
    batches = Batches(lengths, batch_size, seed=3)
    first = epoch * batches.batches_per_epoch
    plan = [batches[k] for k in range(first, first + batches.batches_per_epoch)]
    used = np.concatenate([slots.indices for slots in plan])
    assert all(slots.indices.shape == (batch_size,) for slots in plan)
    assert all(lengths[slots.indices].max() <= slots.padded_length for slots in plan)
    assert {slots.padded_length for slots in plan} <= set(batches.padded_lengths)
    if len(lengths) >= batch_size:
        assert len(set(used.tolist())) == len(used)
        assert len(lengths) - len(used) < batch_size
    else:
        assert set(used.tolist()) == set(range(len(lengths)))


def test_a_batch_depends_on_its_number_and_the_seed_only():
    lengths = np.random.default_rng(0).integers(5, 100, 50)
    forward = [Batches(lengths, 4, seed=1)[k] for k in range(40)]
    jumping = Batches(lengths, 4, seed=1)
    for k in (39, 0, 17, 12, 13, 38, 1):
        np.testing.assert_array_equal(jumping[k].indices, forward[k].indices)
        assert jumping[k].padded_length == forward[k].padded_length
    other = Batches(lengths, 4, seed=2)
    assert any((other[k].indices != forward[k].indices).any() for k in range(12))


def test_epochs_are_shuffled_anew():
    lengths = np.random.default_rng(0).integers(5, 100, 50)
    batches = Batches(lengths, 4, seed=0)
    epochs = [[tuple(batches[k].indices.tolist()) for k in range(e * 12, (e + 1) * 12)] for e in range(30)]
    assert len({tuple(epoch) for epoch in epochs}) == 30
    left_out = [set(range(50)) - set(itertools.chain(*epoch)) for epoch in epochs]
    assert len(set.union(*left_out)) > 20  # two a time, and not always the same
    assert len({batches[e * 12].padded_length for e in range(30)}) > 1  # neither does an epoch start with the shortest


def test_the_shuffle_never_changes():
    """A run that was started with another version of numpy is continued to the bit."""
    batches = Batches(np.array([5] * 6 + [9] * 4), 4, seed=7)
    assert [batches[k].indices.tolist() for k in range(4)] == [[0, 5, 8, 6], [4, 3, 2, 1], [1, 4, 3, 2], [7, 9, 6, 8]]


@pytest.mark.parametrize(
    ("name", "shapes"), [("bach", 8), ("jsb", 8), ("nottingham", 12), ("musedata", 16), ("piano-midi", 16)]
)
def test_padding_and_shapes_are_few_on_every_set(name, shapes, request):
    folder = None if name == "bach" else request.getfixturevalue("pianoroll_files")
    batches = Batches(load(name, data_dir=folder).lengths("train"), 4, seed=0)
    assert batches.waste(epochs=10) < 0.13
    assert len(batches.padded_lengths) <= shapes


def test_waste_is_what_the_batches_pad():
    batches = Batches(np.array([10, 10, 10, 20]), 4, seed=0)
    assert batches.padded_lengths == (20,)
    assert batches.waste(epochs=2) == pytest.approx(80 / 50 - 1)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=10).map(np.array), st.integers(1, 4))
def test_buckets_are_the_best_ones(lengths, count):
    values = np.unique(lengths)

    def padded(buckets: tuple[int, ...]) -> int:
        return int(np.array(buckets)[np.searchsorted(buckets, lengths)].sum())

    choices = [
        (*inner, int(values[-1])) for inner in itertools.combinations(values[:-1].tolist(), min(count, len(values)) - 1)
    ]
    found = best_buckets(lengths, count)
    assert found[-1] == values[-1]
    assert len(found) == min(count, len(values))
    assert padded(found) == min(map(padded, choices))


def test_very_many_lengths_are_no_burden():
    lengths = np.arange(1, 20_001)
    buckets = choose_padded_lengths(lengths, 4)
    assert len(buckets) <= 16
    assert buckets[-1] == 20_000


@settings(max_examples=60, deadline=None)
@given(lengths_of_sets, st.integers(1, 9))
def test_evaluation_covers_every_sequence_once(lengths, chunk):
    chunks = evaluation_chunks(lengths, chunk)
    used = np.concatenate([slots.indices for slots in chunks])
    assert sorted(used[used >= 0].tolist()) == list(range(len(lengths)))
    assert all(len(slots.indices) <= chunk for slots in chunks)
    shapes: dict[int, set[int]] = {}
    for slots in chunks:
        shapes.setdefault(slots.padded_length, set()).add(len(slots.indices))
        assert lengths[slots.indices[slots.indices >= 0]].max() <= slots.padded_length
    assert all(len(sizes) == 1 for sizes in shapes.values())


def test_what_a_sequence_is_padded_to_does_not_depend_on_the_chunk():
    lengths = np.random.default_rng(0).integers(5, 400, 40)

    def padded(chunk: int) -> dict[int, int]:
        return {
            int(i): slots.padded_length for slots in evaluation_chunks(lengths, chunk) for i in slots.indices if i >= 0
        }

    assert padded(1) == padded(3) == padded(16)


def test_given_padded_lengths_are_used_and_extended():
    chunks = evaluation_chunks(np.array([3, 9, 30]), 2, padded_lengths=(5, 10))
    assert [(slots.indices.tolist(), slots.padded_length) for slots in chunks] == [([0], 5), ([1], 10), ([2], 30)]


def test_padding_puts_zeros_after_the_end(tiny):
    sequences = tiny.splits["train"]
    observations, lengths = pad(sequences, np.array([2, -1, 0]), 12)
    assert (observations.shape, observations.dtype) == ((3, 12, 88), np.float32)
    assert lengths.tolist() == [9, 0, 5]
    np.testing.assert_array_equal(observations[0, :9], sequences[2])
    np.testing.assert_array_equal(observations[2, :5], sequences[0])
    assert not observations[0, 9:].any()
    assert not observations[1].any()
    assert pad(sequences, np.array([0]), 5, np.uint8)[0].dtype == np.uint8


@pytest.mark.parametrize(("lengths", "batch_size", "seed"), [([], 4, 0), ([3, 0], 4, 0), ([3], 0, 0), ([3], 4, -1)])
def test_bad_arguments_are_one_sentence(lengths, batch_size, seed):
    with pytest.raises(InputError):
        Batches(np.array(lengths, dtype=np.int64), batch_size, seed)


def test_a_batch_before_the_first_does_not_exist():
    with pytest.raises(IndexError):
        Batches(np.array([1, 2]), 2, 0)[-1]
