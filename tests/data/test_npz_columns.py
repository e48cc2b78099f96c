"""Plain numbers in an .npz."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivo.data import SPLITS, Column, Dataset, load, save_npz
from fivo.errors import InputError
from tests.sentences import assert_one_sentence

RNG = np.random.default_rng(0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "mine.npz"


def full(standardize=True):
    def sequences(*lengths):
        found = []
        for n in lengths:
            x = np.stack([RNG.normal(5, 2, n), RNG.poisson(3.0, n), RNG.integers(0, 2, n), RNG.integers(0, 3, n)], 1)
            x[RNG.random(x.shape) < 0.2] = np.nan
            found.append(x)
        return found

    lengths = {"train": (9, 4, 30), "valid": (8,), "test": (7, 3)}
    inputs = {split: [RNG.normal(size=(n, 2)) for n in sizes] for split, sizes in lengths.items()}
    return Dataset.from_arrays(
        **{split: sequences(*sizes) for split, sizes in lengths.items()},
        inputs=inputs,
        columns=["depth", "hits", "wet", "type"],
        kinds={"type": "category"},
        input_columns=["wind", "Straße"],
        standardize=standardize,
    )


def assert_same(read, dataset):
    assert (read.columns, read.input_columns) == (dataset.columns, dataset.input_columns)
    assert read.fingerprint == dataset.fingerprint
    for split in SPLITS:
        ours, theirs = read.splits[split], dataset.splits[split]
        assert ours.starts == theirs.starts
        for name in ("sequences", "masks", "inputs"):
            parts = getattr(ours, name), getattr(theirs, name)
            assert (parts[0] is None) == (parts[1] is None)
            for a, b in zip(*(part or () for part in parts), strict=True):
                np.testing.assert_array_equal(a, b)


def test_everything_survives(path, tmp_path):
    dataset = full()
    save_npz(dataset, path)
    assert_same(load(path), dataset)
    save_npz(load(path), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_context_and_an_empty_test_split_survive(path):
    dataset = Dataset.from_arrays(RNG.normal(size=(40, 2)))
    assert dataset.splits["valid"].starts == (36,)
    save_npz(dataset, path)
    assert_same(load(path), dataset)


def test_what_numpy_writes_is_read(path):
    train, valid = RNG.normal(size=(12, 5, 3)), RNG.normal(size=(2, 5, 3))
    np.savez(path, train=train, valid=valid)
    dataset = load(path)
    assert dataset.counts == {"train": (12, 60), "valid": (2, 10), "test": (0, 0)}
    assert [column.name for column in dataset.columns] == ["x0", "x1", "x2"]
    assert {column.kind for column in dataset.columns} == {"real"}
    np.testing.assert_array_equal(dataset.splits["valid"][1], valid[1].astype(np.float32))
    np.savez(path, train=train)
    assert load(path).counts["valid"] == (1, 5)


def test_ragged_and_padded_sequences(path):
    x = RNG.poisson(2.0, (9, 2))
    np.savez(path, train=x, train_lengths=np.array([4, 5]), valid=x[:2], columns=np.array(["a", "b"]))
    dataset = load(path)
    assert dataset.lengths("train").tolist() == [4, 5]
    assert [(column.name, column.kind) for column in dataset.columns] == [("a", "count"), ("b", "count")]
    padded = np.zeros((2, 5, 2))
    padded[0, :4], padded[1] = x[:4], x[4:]
    np.savez(path, train=padded, train_lengths=np.array([4, 5]), valid=x[:2], columns=np.array(["a", "b"]))
    assert load(path).fingerprint == dataset.fingerprint


def test_nan_is_missing_unless_there_is_a_mask(path):
    x = RNG.normal(size=(1, 6, 2))
    x[0, 3, 1] = np.nan
    np.savez(path, train=x, valid=x)
    assert load(path).splits["train"].masks[0].sum() == 11
    mask = np.ones(x.shape, bool)
    mask[0, 3, 1] = mask[0, 2, 0] = False
    np.savez(path, train=x, valid=x, train_mask=mask)
    assert load(path).splits["train"].masks[0].sum() == 10
    np.savez(path, train=x, valid=x, train_mask=np.ones(x.shape, bool))
    with pytest.raises(InputError, match="got nan at step 3"):
        load(path)


def test_88_columns_of_numbers_need_a_kind(path):
    x = RNG.normal(size=(6, 88))
    arrays = dict.fromkeys(SPLITS, x) | {f"{split}_lengths": np.array([6]) for split in SPLITS}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="entries other than 0 and 1"):
        load(path)
    np.savez(path, **arrays, kind="columns")
    assert load(path).columns[87] == Column("x87", "real")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"train": None}, "has no array train"),
        ({"extra": np.zeros(3)}, "has an unknown array 'extra'"),
        ({"train": np.zeros((0, 3, 2))}, "train is empty"),
        ({"train": np.zeros((2, 3, 0))}, "train is empty"),
        ({"train": np.array([["a", "b"]])}, "must be numbers of shape"),
        ({"train": np.array([[{}]])}, "not a readable .npz"),
        ({"valid": np.zeros((1, 3, 5))}, "valid sequence 0 has 5 columns, but 2 are needed"),
        ({"train_lengths": np.array([3, 3, 3])}, "3 lengths up to 3"),
        ({"train_lengths": np.array([3, 4])}, "2 lengths up to 4"),
        ({"train_lengths": np.array([3, 0])}, "train sequence 1 is empty"),
        ({"train_lengths": np.array([], int)}, "train sequence 0 is empty"),
        ({"train_lengths": np.array([3.0, 3.0])}, "must be integers"),
        ({"train": np.zeros((5, 2)), "train_lengths": np.array([2**62, 2**62])}, "sum to more"),
        ({"train_mask": np.ones((2, 3, 2))}, "train_mask must be booleans of shape [2, 3, 2], got float64"),
        ({"train_mask": np.ones((2, 3), bool)}, "train_mask must be booleans of shape"),
        ({"train_inputs": np.ones((2, 3))}, "train_inputs must be numbers of shape [2, 3, 'U']"),
        ({"train_inputs": np.full((2, 3, 1), np.inf)}, "must be finite numbers"),
        ({"train_starts": np.array([1])}, "one for each of 2 sequences"),
        ({"train_starts": np.array([1, 3])}, "must be scored from one of its 3 steps on, got step 3"),
        ({"train_starts": np.array([-1, 0])}, "got step -1"),
        ({"test_mask": np.ones((2, 3, 2), bool)}, "has an array test_mask, but no test"),
        ({"columns": np.array(["a"])}, "columns must be 2 texts"),
        ({"columns": np.array(["a", "a"])}, "must have different names"),
        ({"kinds": np.array(["real", "vague"])}, "got 'vague'"),
        ({"kinds": np.array(["real", "vague"]), "scale": np.ones(2)}, "got 'vague'"),
        ({"kinds": np.array(["real", "count"]), "scale": np.ones(2)}, "the count column 'x1' must hold whole numbers"),
        ({"kinds": np.array(["real", "real"]), "scale": np.zeros(2)}, "scale positive"),
        ({"scale": np.ones(2)}, "but not their `kinds`"),
        (
            {"kinds": np.array(["real", "category"]), "categories": np.array(["a"])},
            "categories_lengths must say how many",
        ),
        (
            {
                "kinds": np.array(["real", "category"]),
                "categories": np.array(["a", "b"]),
                "categories_lengths": np.array([0, 1]),
            },
            "categories must be 1 texts",
        ),
        ({"kind": np.array("columns"), "step_seconds": np.array(1.0)}, "has an array step_seconds that a columns"),
        ({"kind": np.array("video")}, "has no array"),
    ],
)
def test_a_mistake_is_one_sentence(change, part, path):
    arrays = {"train": RNG.normal(size=(2, 3, 2)), "valid": RNG.normal(size=(1, 3, 2))} | change
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    with pytest.raises(InputError) as refused:
        load(path)
    assert_one_sentence(refused.value, part)


def test_every_beginning_of_a_file_is_refused(path):
    save_npz(full(), path)
    content = path.read_bytes()
    for end in range(4, len(content), 131):
        path.write_bytes(content[:end])
        with pytest.raises(InputError, match=r"mine\.npz"):
            load(path)


def test_what_arrays_become_is_counted(path, monkeypatch):
    monkeypatch.setattr("fivo.data.budget.MEMORY", 1 << 20)
    np.savez_compressed(path, train=np.zeros((1, 200_000, 1), np.uint8))
    with pytest.raises(InputError, match=r"becomes more than .* GiB in memory; split it up"):
        load(path)
    np.savez_compressed(path, train=np.zeros((1, 1, 5_000), np.uint8), valid=np.zeros((1, 1, 5_000), np.uint8))
    with pytest.raises(InputError, match=r"becomes more than .* GiB in memory; split it up"):
        load(path)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 2), st.integers(0, 2**32))
def test_any_dataset_survives(tmp_path_factory, lengths, width, num_inputs, seed):
    rng = np.random.default_rng(seed)

    def one(n):
        x = rng.choice([rng.normal(size=(n, width)), rng.integers(0, 5, (n, width)) * 1.0])
        return np.where(rng.random(x.shape) < 0.2, np.nan, x)

    train = [*map(one, lengths), np.full((2, width), 0.5)]
    inputs = {"train": [rng.normal(size=(len(x), num_inputs)) for x in train]} if num_inputs else None
    dataset = Dataset.from_arrays(train, inputs=inputs, standardize=bool(seed % 2), name="any")
    path = tmp_path_factory.mktemp("npz") / "any.npz"
    save_npz(dataset, path)
    assert_same(load(path), dataset)
