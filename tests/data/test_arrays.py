"""Datasets of anybody's numbers."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fivo.data import SPLITS, Column, Dataset, Split
from fivo.errors import InputError
from tests.sentences import assert_one_sentence

RNG = np.random.default_rng(0)


def series(*lengths, width=2):
    return [RNG.normal(3.0, 2.0, (length, width)) for length in lengths]


def mixed(*lengths, missing=0.1):
    """Two real columns, a count, a binary one and a category of three."""
    found = []
    for length in lengths:
        columns = [
            RNG.normal(10.0, 4.0, length),
            RNG.normal(size=length),
            RNG.poisson(3.0, length) * 1.0,
            (RNG.random(length) < 0.4) * 1.0,
            RNG.integers(0, 3, length) * 1.0,
        ]
        x = np.stack(columns, axis=1)
        x[RNG.random(x.shape) < missing] = np.nan
        found.append(x)
    return found


def test_five_columns_with_missing_entries():
    lengths = {"train": (30, 12, 25), "valid": (20,), "test": (9, 14)}
    raw = {split: mixed(*sizes) for split, sizes in lengths.items()}
    inputs = {split: [RNG.normal(size=(n, 2)) for n in sizes] for split, sizes in lengths.items()}
    names = ["depth", "heat", "hits", "wet", "type"]
    dataset = Dataset.from_arrays(**raw, inputs=inputs, columns=names, kinds={"type": "category"}, standardize=True)
    assert [column.kind for column in dataset.columns] == ["real", "real", "count", "binary", "category"]
    assert [column.is_scaled for column in dataset.columns] == [True, True, False, False, False]
    assert dataset.columns[4].categories == ("0", "1", "2")
    assert [column.name for column in dataset.input_columns] == ["u0", "u1"]
    together = np.concatenate(raw["train"])
    np.testing.assert_allclose(dataset.columns[0].shift, np.nanmean(together[:, 0]))
    np.testing.assert_allclose(dataset.columns[0].scale, np.nanstd(together[:, 0]))
    np.testing.assert_allclose(dataset.train_mean[2:4], np.nanmean(together[:, 2:4], axis=0), rtol=1e-6)
    np.testing.assert_allclose(dataset.train_mean[:2], 0, atol=1e-6)
    np.testing.assert_allclose(dataset.train_deviation[:2], 1, atol=1e-6)
    seen = together[~np.isnan(together[:, 4]), 4]
    np.testing.assert_allclose(dataset.train_rates(4), np.bincount(seen.astype(int), minlength=3) / len(seen))
    for split in SPLITS:
        part = dataset.splits[split]
        for x, frames, mask in zip(raw[split], part, part.masks, strict=True):
            np.testing.assert_array_equal(mask, ~np.isnan(x))
            assert (frames[~mask] == 0).all()
            np.testing.assert_allclose(dataset.restore(frames)[mask], x[mask], rtol=1e-5, atol=1e-5)
            assert frames.dtype == np.float32
            assert not frames.flags.writeable
    offsets = dataset.raw_data_offsets("test")
    costs = np.log([column.scale for column in dataset.columns])
    np.testing.assert_allclose(offsets, [-(~np.isnan(x)).sum(axis=0) @ costs for x in raw["test"]])


def test_what_an_array_may_be():
    one = Dataset.from_arrays(series(20)[0])
    assert one.counts == {"train": (1, 18), "valid": (1, 2), "test": (0, 0)}
    many = Dataset.from_arrays(np.stack(series(*[7] * 12)), test=np.stack(series(3, 3)))
    assert many.counts == {"train": (11, 77), "valid": (1, 7), "test": (2, 6)}
    assert Dataset.from_arrays([[[1, 2], [3, 4]]], [[[0, 2]]]).columns[0].kind == "count"


def test_validation_is_held_out_in_time_with_the_steps_before_as_context():
    x = series(40, 15)
    dataset = Dataset.from_arrays(x, inputs=[np.ones((40, 1)), np.ones((15, 1))])
    valid = dataset.splits["valid"]
    assert valid.starts == (36, 14)
    assert dataset.lengths("valid").tolist() == [40, 15]
    assert dataset.scored_lengths("valid").tolist() == [4, 1]
    assert dataset.lengths("train").tolist() == [36, 14]
    assert [len(u) for u in valid.inputs] == [40, 15]
    np.testing.assert_allclose(valid[0][:36], dataset.splits["train"][0])
    whole = Dataset.from_arrays(x[:1], x[1:], standardize=True)
    held_out = Dataset.from_arrays(x, standardize=True)
    assert whole.raw_data_offsets("valid")[0] == pytest.approx(-15 * np.log([c.scale for c in whole.columns]).sum())
    scales = [column.scale for column in held_out.columns]
    np.testing.assert_allclose(held_out.raw_data_offsets("valid"), -np.array([4, 1]) * np.log(scales).sum())


def test_scaling_comes_from_train_alone():
    train, valid = series(50), series(50)
    first = Dataset.from_arrays(train, valid, standardize=True)
    second = Dataset.from_arrays(train, [valid[0] * 100], [valid[0] - 7], standardize=True)
    assert first.columns == second.columns


def test_scaled_columns_of_ones_own():
    column = Column("a", "real", shift=10.0, scale=4.0)
    dataset = Dataset.from_arrays([np.array([[10.0], [14.0]])], [np.array([[6.0]])], columns=[column])
    assert dataset.splits["train"][0].ravel().tolist() == [0.0, 1.0]
    assert dataset.splits["valid"][0].ravel().tolist() == [-1.0]
    assert dataset.columns == (column,)
    again = Dataset("x", dict(dataset.splits), dataset.columns)
    assert again.fingerprint == dataset.fingerprint


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], "binary"),
        ([0.0, 1.0], "binary"),
        ([1, 1], "binary"),
        ([0, 2], "count"),
        ([0.0, 7.0], "count"),
        ([np.nan, 7.0], "count"),
        ([-1, 3], "real"),
        ([0.5, 1], "real"),
        ([0, 2**24 + 1], "real"),
    ],
)
def test_kinds_are_guessed(values, kind):
    x = np.array(values)[:, None]
    assert Dataset.from_arrays([x], [x]).columns[0].kind == kind


def test_all_binary_frames_are_bytes():
    dataset = Dataset.from_arrays([np.ones((3, 2))], [np.zeros((2, 2))])
    assert dataset.splits["train"][0].dtype == np.uint8
    assert dataset.fingerprint


def test_a_mask_decides_over_nan():
    x, mask = series(5)[0], np.ones((5, 2), bool)
    mask[2, 1] = False
    x[2, 1] = np.nan
    dataset = Dataset.from_arrays([x], [x], mask={"train": [mask], "valid": [mask]})
    np.testing.assert_array_equal(dataset.splits["train"].masks[0], mask)
    with pytest.raises(InputError) as refused:
        Dataset.from_arrays([x], [x], mask={"train": [np.ones((5, 2), bool)]})
    assert_one_sentence(refused.value, "column 'x1' must hold finite numbers", "got nan at step 2")


def test_a_slice_keeps_what_belongs_to_it():
    dataset = Dataset.from_arrays(mixed(5, 6, 7), mixed(4), inputs={"train": [np.ones((n, 1)) for n in (5, 6, 7)]}
                                  | {"valid": [np.ones((4, 1))]})  # fmt: skip
    part = dataset.splits["train"][1:]
    assert isinstance(part, Split)
    assert part.lengths.tolist() == [6, 7]
    assert [len(mask) for mask in part.masks] == [6, 7]
    assert [len(u) for u in part.inputs] == [6, 7]
    assert repr(part) == "Split(2 sequences, 13 frames, masks, inputs)"


def good(**changes):
    x = series(6, 5)
    return {"train": x, "valid": series(4)} | changes


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"train": None}, "`train` must hold at least one sequence"),
        ({"train": []}, "`train` must hold at least one sequence"),
        ({"train": 3}, "`train` must be a list of arrays"),
        ({"train": np.zeros(5)}, "x[:, None]"),
        ({"train": [np.zeros(5)]}, "`train` sequence 0 must be numbers of shape [time, dimension]"),
        ({"train": [[[1, 2], [3]]]}, "`train` sequence 0 must be numbers"),
        ({"train": [np.zeros((0, 2))]}, "`train` sequence 0 must be numbers"),
        ({"train": [np.array([["a", "b"]])]}, "`train` sequence 0 must be numbers"),
        ({"train": [np.zeros((2, 2)), np.zeros((2, 3))]}, "train sequence 1 has 3 columns, but 2 are needed"),
        ({"valid": [np.zeros((2, 3))]}, "valid sequence 0 has 3 columns, but 2 are needed"),
        ({"train": [np.full((3, 2), np.inf)]}, "got inf at step 0"),
        ({"train": [np.full((3, 2), 1e300)]}, "too large for single precision"),
        ({"train": [np.full((3, 2), np.nan)], "valid": [np.full((3, 2), np.nan)]}, "'x0' must have a value in train"),
        ({"train": [np.array([[np.nan, 1.0]])]}, "'x0' must have a value in train"),
        ({"valid": None, "train": [np.zeros((1, 2))]}, "`valid` must be given"),
        ({"columns": ["a"]}, "`columns` must name all 2 columns, got 1"),
        ({"columns": ["a", "a"]}, "must have different names, but 'a' comes twice"),
        ({"columns": ["a", ""]}, "the name of a column must be a text that is not empty"),
        ({"columns": [Column("a", "real")]}, "`columns` must describe all 2 columns, got 1"),
        ({"kinds": "vague"}, "must be one of real, count, binary, category, got 'vague'"),
        ({"kinds": ["real"]}, "one kind for each of 2 columns, got 1"),
        ({"kinds": {"z": "real"}}, "got 'z'"),
        ({"kinds": {5: "real"}}, "got 5"),
        ({"kinds": "count"}, "the count column 'x0' must hold whole numbers from 0 to 16,777,216"),
        ({"kinds": "binary"}, "the binary column 'x0' must hold 0 or 1"),
        ({"train": [np.array([[0.5, 0]])], "valid": [np.array([[2, 0]])], "kinds": {0: "category"}}, "symbols 0 to 2"),
        ({"train": [np.array([[0, 1e9]])], "valid": [np.array([[2, 0]])], "kinds": {1: "category"}}, "to 9,999"),
        ({"inputs": [np.zeros((6, 1))]}, "`inputs` must be a dictionary by split"),
        ({"inputs": {"test": []}}, "`inputs` must be for train, valid, got 'test'"),
        ({"inputs": {"train": [np.zeros((6, 1))] * 2}}, "as many steps as the sequences, [6, 5], got [6, 6]"),
        ({"inputs": {"train": [np.zeros((6, 1)), np.zeros((5, 2))]}}, "must have one width, got [1, 2]"),
        ({"inputs": {"train": [np.zeros((6, 1)), np.zeros((5, 1))]}}, "must have inputs if there are columns for them"),
        ({"input_columns": ["a"]}, "`input_columns` names 1 inputs, but train has none"),
        ({"mask": {"train": [np.ones((6, 2)), np.ones((5, 2))]}}, "must be booleans of shape [6, 2], got float64"),
        ({"mask": {"train": [np.ones((6, 2), bool)]}}, "as many steps as the sequences"),
        (
            {"inputs": {"train": [np.full((6, 1), np.nan), np.zeros((5, 1))], "valid": [np.zeros((4, 1))]}},
            "must be finite numbers",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(changes, part):
    with pytest.raises(InputError) as refused:
        Dataset.from_arrays(**good(**changes))
    assert_one_sentence(refused.value, part)


def test_a_new_value_in_test_is_refused():
    binary = np.array([[0.0], [1.0]])
    with pytest.raises(InputError) as refused:
        Dataset.from_arrays([binary], [binary], [binary * 3])
    assert_one_sentence(refused.value, "test sequence 0", "must hold 0 or 1, got 3 at step 1")
    with pytest.raises(InputError) as refused:
        Dataset.from_arrays([binary], [binary], [binary * 3], kinds="category")
    assert_one_sentence(refused.value, "must hold the symbols 0 to 1, got 3")


@pytest.mark.parametrize(
    ("facts", "part"),
    [
        ({"name": ""}, "a text that is not empty"),
        ({"scale": 0.0}, "its scale positive"),
        ({"shift": float("nan")}, "must be finite"),
        ({"kind": "count", "scale": 2.0}, "only a real column can be scaled"),
        ({"kind": "category"}, "must name its categories"),
        ({"categories": ("a",)}, "must name its categories, and no other may"),
        ({"kind": "category", "categories": ("a", "a")}, "must differ"),
        ({"kind": "category", "categories": tuple(map(str, range(10_001)))}, "more than 10,000"),
    ],
)
def test_a_column_is_checked(facts, part):
    with pytest.raises(InputError) as refused:
        Column(**{"name": "a", "kind": "real"} | facts)
    assert_one_sentence(refused.value, part)


def test_an_unknown_kind_of_column_is_refused():
    facts = SimpleNamespace(name="a", kind="vague")  # here the annotations would refuse it first
    with pytest.raises(InputError) as refused:
        Column.__post_init__(facts)
    assert_one_sentence(refused.value, "column 'a' must be one of real, count, binary, category, got 'vague'")


def test_a_name_cannot_move_the_cursor():
    with pytest.raises(InputError) as refused:
        Column("\x1b[2Jnice" + "x" * 500, "real", scale=-1.0)
    assert refused.value.args[0].isprintable()
    assert len(str(refused.value)) < 200


def test_the_fingerprint_covers_everything():
    x, u = mixed(9, 8), [np.ones((9, 1)), np.ones((8, 1))]
    base = {"train": x, "valid": mixed(5), "inputs": {"train": u, "valid": [np.ones((5, 1))]}}
    mask = [~np.isnan(v) for v in x]
    other = [m.copy() for m in mask]
    other[0][0, 0] ^= True
    filled = [np.nan_to_num(v) for v in x]
    seen = {
        Dataset.from_arrays(**base | change).fingerprint
        for change in (
            {},
            {"columns": list("abcde")},
            {"kinds": {0: "real", 4: "category"}},
            {"standardize": True},
            {"inputs": {"train": [2 * v for v in u], "valid": [np.ones((5, 1))]}},
            {"train": filled, "mask": {"train": other}},
            {"train": filled},
            {"input_columns": ["wind"]},
        )
    }
    assert len(seen) == 8
    assert Dataset.from_arrays(**base, name="other").fingerprint == Dataset.from_arrays(**base).fingerprint
    part = Dataset.from_arrays(x, x)
    moved = dataclasses.replace(part.splits["valid"], starts=(1, 0))
    assert Dataset("a", {**part.splits, "valid": moved}, part.columns).fingerprint != part.fingerprint


def test_music_keeps_no_masks(tiny):
    masked = Split(tiny.splits["train"].sequences, tuple(np.ones(x.shape, bool) for x in tiny.splits["train"]))
    with pytest.raises(InputError) as refused:
        Dataset("x", {**tiny.splits, "train": masked}, tiny.columns, sound=tiny.sound)
    assert_one_sentence(refused.value, "have no masks or inputs")


def test_an_empty_test_split_is_refused_when_it_is_asked_for():
    dataset = Dataset.from_arrays(**good())
    with pytest.raises(InputError) as refused:
        dataset.split("test")
    assert_one_sentence(refused.value, "arrays has no test data")
    with pytest.raises(InputError) as refused:
        dataset.split("dev")
    assert_one_sentence(refused.value, "use one of train, valid, test")


def test_it_is_shown_on_a_screen():
    wide = Dataset.from_arrays([RNG.normal(size=(20, 500))], columns=["c" * 300 + str(i) for i in range(500)])
    assert len(repr(wide)) < 600
    assert "and 494 more" in repr(wide)
    assert "missing" in repr(Dataset.from_arrays(mixed(50), mixed(5)))


NUMBERS = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_goes_in_comes_out(data):
    width = data.draw(st.integers(1, 4))
    shapes = st.integers(1, 6).map(lambda length: (length, width))
    arrays = hnp.arrays(np.float64, shapes, elements=NUMBERS | st.just(np.nan))
    splits = {split: data.draw(st.lists(arrays, min_size=1, max_size=3)) for split in SPLITS}
    splits["train"].append(np.full((1, width), 0.5))
    dataset = Dataset.from_arrays(**splits, standardize=data.draw(st.booleans()), kinds="real")
    for split in SPLITS:
        part = dataset.splits[split]
        assert len(part) == len(splits[split])
        for index, x in enumerate(splits[split]):
            mask = np.ones(x.shape, bool) if part.masks is None else part.masks[index]
            np.testing.assert_array_equal(mask, ~np.isnan(x))
            scale = np.array([column.scale for column in dataset.columns])
            error = np.abs(dataset.restore(part[index]) - x)
            assert (error[mask] <= (1e-6 * (np.abs(x) + 2e6) + 1e-5 * scale)[mask]).all()
