"""From a table to a dataset."""

import datetime as dt

import numpy as np
import pytest

from fivo.data import Column, Dataset, load, save_npz
from fivo.errors import InputError
from tests.data.tables.made import USES, fleet, pl
from tests.sentences import assert_one_sentence


def rows_of(frame, ship, name):
    return frame.filter(pl.col("ship") == ship)[name].to_numpy()


def test_columns_inputs_and_scaling():
    frame = fleet(3, 40, missing=0.1)
    dataset = Dataset.from_table(frame, **USES)
    assert [(c.name, c.kind) for c in dataset.columns] == [
        ("lat", "real"),
        ("lon", "real"),
        ("hits", "count"),
        ("wet", "binary"),
    ]
    types = frame["type"].unique().sort().to_list()
    assert [c.name for c in dataset.input_columns] == ["wind", *(f"type={label}" for label in types)]
    train = frame.filter(pl.col("t") < 32)
    assert dataset.columns[0].shift == pytest.approx(train["lat"].mean())
    assert dataset.columns[0].scale == pytest.approx(train["lat"].std(ddof=0))
    assert dataset.columns[2] == Column("hits", "count")
    assert dataset.input_columns[0].shift == pytest.approx(train["wind"].mean())
    part = dataset.splits["train"]
    raw = rows_of(frame, "s1", "lat")[:32]
    np.testing.assert_array_equal(part.masks[1][:, 0], ~np.isnan(raw.astype(float)))
    restored = dataset.restore(part[1])
    np.testing.assert_allclose(restored[part.masks[1][:, 0], 0], raw[part.masks[1][:, 0]].astype(float), rtol=1e-6)
    np.testing.assert_array_equal(restored[:, 2], rows_of(frame, "s1", "hits")[:32])
    one_hot = part.inputs[1][:, 1:]
    assert (one_hot == (np.array(types) == rows_of(frame, "s1", "type")[0])).all()
    assert dataset.table.rows == {"train": 96, "valid": 12, "test": 12}
    assert dataset.table.series == {"train": 3, "valid": 3, "test": 3}


def test_rows_are_sorted_by_time_and_series_come_as_they_appear():
    frame = fleet(3, 20)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    first = list(dict.fromkeys(shuffled["ship"].to_list()))
    dataset = Dataset.from_table(shuffled, id="ship", time="t", values=["hits"])
    for index, ship in enumerate(first):
        np.testing.assert_array_equal(dataset.splits["test"][index].ravel(), rows_of(frame, ship, "hits"))


def test_time_splits_have_the_earlier_rows_as_context():
    dataset = Dataset.from_table(fleet(2, 50), id="ship", time="t", values=["lat", "lon"])
    assert dataset.table.split.kind == "time"
    assert dataset.lengths("train").tolist() == [40, 40]
    assert dataset.splits["valid"].starts == (40, 40)
    assert dataset.splits["test"].starts == (45, 45)
    assert dataset.lengths("test").tolist() == [50, 50]
    assert dataset.scored_lengths("test").tolist() == [5, 5]
    np.testing.assert_array_equal(dataset.splits["test"][0][:40], dataset.splits["train"][0])
    base = dataset.splits["train"][0]
    assert np.shares_memory(base, dataset.splits["test"][0])
    assert dataset.counts == {"train": (2, 80), "valid": (2, 10), "test": (2, 10)}


def test_many_series_are_split_by_series_the_same_way_each_time():
    frame = fleet(30, 6)
    first, again, other = (Dataset.from_table(frame, **USES, seed=seed) for seed in (0, 0, 1))
    assert first.table.split.kind == "series"
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert {split: len(part) for split, part in first.splits.items()} == {"train": 24, "valid": 3, "test": 3}
    assert first.splits["test"].starts is None
    few = Dataset.from_table(fleet(4, 6), **USES, split="series")
    assert {split: len(part) for split, part in few.splits.items()} == {"train": 2, "valid": 1, "test": 1}


def test_a_calibration_split():
    shares = {"train": 0.5, "valid": 0.2, "calibrate": 0.2, "test": 0.1}
    dataset = Dataset.from_table(fleet(1, 50), time="t", values=["lat"], fractions=shares)
    assert list(dataset.splits) == ["train", "valid", "calibrate", "test"]
    assert dataset.splits["calibrate"].starts == (35,)
    assert dataset.scored_lengths("calibrate").tolist() == [10]
    assert dataset.scored_lengths("test").tolist() == [5]


def test_a_calibration_split_survives_an_npz(tmp_path):
    shares = {"train": 0.5, "valid": 0.2, "calibrate": 0.2, "test": 0.1}
    dataset = Dataset.from_table(fleet(1, 50, missing=0.1), time="t", values=["lat", "wet"], fractions=shares)
    save_npz(dataset, tmp_path / "a.npz")
    assert load(tmp_path / "a.npz").fingerprint == dataset.fingerprint


def test_a_column_names_the_splits():
    frame = fleet(2, 10).with_columns(
        part=pl.Series(["train"] * 5 + ["valid"] * 3 + ["test"] * 2 + ["Train "] * 10),
    )
    dataset = Dataset.from_table(frame, id="ship", time="t", values=["lat"], split="part")
    assert dataset.counts == {"train": (2, 15), "valid": (1, 3), "test": (1, 2)}
    assert dataset.splits["test"].starts == (8,)
    assert dataset.table.split.column == "part"
    back = frame.with_columns(part=pl.Series(["valid"] * 5 + ["train"] * 5 + ["test"] * 10))
    with pytest.raises(InputError) as refused:
        Dataset.from_table(back, id="ship", time="t", values=["lat"], split="part")
    assert_one_sentence(refused.value, "row 6 goes back")
    odd = frame.with_columns(part=pl.lit("dev"))
    with pytest.raises(InputError) as refused:
        Dataset.from_table(odd, id="ship", time="t", values=["lat"], split="part")
    assert_one_sentence(refused.value, "must say train, valid, calibrate or test in every row, got 'dev' in row 1")


def test_nothing_leaks_from_test():
    frame = fleet(2, 50)
    late = pl.col("t") >= 45
    changed = frame.with_columns(
        lat=pl.when(late).then(pl.col("lat") * 1000).otherwise(pl.col("lat")),
        wind=pl.when(late).then(-7.0).otherwise(pl.col("wind")),
    )
    first, second = (Dataset.from_table(given, **USES) for given in (frame, changed))
    assert first.table == second.table
    for part in ("train", "valid"):
        for x, y in zip(first.splits[part], second.splits[part], strict=True):
            np.testing.assert_array_equal(x, y)
    middle = frame.with_columns(lat=pl.when(pl.col("t") >= 40).then(pl.col("lat") * 9).otherwise(pl.col("lat")))
    assert Dataset.from_table(middle, **USES).columns == first.columns


def test_a_new_category_in_test_is_refused():
    labels = ["a", "b"] * 24 + ["new"] * 2
    frame = fleet(1, 50).with_columns(kind=pl.Series(labels))
    with pytest.raises(InputError) as refused:
        Dataset.from_table(frame, time="t", values=["kind"])
    assert_one_sentence(refused.value, "holds the category 'new' in row 49", "'a', 'b'")


def test_irregular_time_becomes_an_input():
    frame = pl.DataFrame({"t": [0.0, 1.0, 2.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.5, 12.0], "y": np.arange(10) + 0.5})
    dataset = Dataset.from_table(frame, time="t")
    assert [column.name for column in dataset.input_columns] == ["gap"]
    assert not dataset.table.time.regular
    gap = dataset.input_columns[0]
    raw = np.concatenate(dataset.splits["test"].inputs) * gap.scale + gap.shift
    np.testing.assert_allclose(raw.ravel(), [1, 1, 1, 3, 1, 1, 1, 1, 0.5, 2.5], rtol=1e-6)
    assert gap.shift == pytest.approx(np.mean([1, 1, 1, 3, 1, 1, 1, 1]))
    with pytest.raises(InputError, match="a column has that name"):
        Dataset.from_table(frame.rename({"y": "gap"}), time="t")


def test_rows_on_a_grid():
    frame = pl.DataFrame({"t": [0.0, 1.0, 4.0, 5.2, 20.0], "y": [1.5, 2, 3, 4, 5], "u": [1.0, None, 3, 4, 5]})
    dataset = Dataset.from_table(frame, time="t", values=["y"], inputs=["u"], every=1)
    whole = dataset.splits["test"]
    assert dataset.lengths("test").tolist() == [21]
    np.testing.assert_array_equal(np.flatnonzero(whole.masks[0].ravel()), [0, 1, 4, 5, 20])
    wind = whole.inputs[0].ravel() * dataset.input_columns[0].scale + dataset.input_columns[0].shift
    np.testing.assert_allclose(wind[:7], [1, 1, 1, 1, 3, 4, 4], atol=1e-5)
    with pytest.raises(InputError) as refused:
        Dataset.from_table(frame, time="t", every=2)
    assert_one_sentence(refused.value, "rows 1 and 2 do", "a smaller `every` than 2")


@pytest.mark.parametrize(
    ("every", "step", "unit", "length"),
    [
        ("10min", 600, "second", 145),
        ("1h", 3600, "second", 25),
        ("1d", 86400, "second", 2),
        ("30 s", 30, "second", 2881),
    ],
)
def test_a_grid_of_times(every, step, unit, length):
    begin = dt.datetime(2024, 2, 28, 12)  # noqa: DTZ001 - tables have such times
    frame = pl.DataFrame({"t": [begin, begin + dt.timedelta(days=1)], "y": [1.0, 2.5]})
    rule = Dataset.from_table(frame, time="t", every=every, fractions={"train": 0.5, "valid": 0.5})
    assert (rule.table.time.step, rule.table.time.unit) == (step, unit)
    assert rule.lengths("valid").tolist() == [length]


def test_months_are_regular():
    days = [dt.date(2023, month, 1) for month in range(1, 13)]
    ends = [dt.date(2023 + month // 12, month % 12 + 1, 1) - dt.timedelta(days=1) for month in range(1, 13)]
    for times in (days, ends, [f"{day}" for day in days], [f"{day:%Y-%m}" for day in days]):
        table = Dataset.from_table(pl.DataFrame({"t": times, "y": np.arange(12.0) / 7}), time="t").table
        assert (table.time.kind, table.time.step, table.time.unit, table.time.regular) == ("date", 1.0, "month", True)
        assert table.gap is None
    sparse = pl.DataFrame({"t": [days[i] for i in (0, 1, 4, 11)], "y": [0.1, 0.2, 0.3, 0.4]})
    shares = {"train": 0.5, "valid": 0.5}
    assert Dataset.from_table(sparse, time="t", every="1mo", fractions=shares).lengths("valid").tolist() == [12]
    with pytest.raises(InputError, match="rows 1 and 2 do"):
        Dataset.from_table(sparse, time="t", every="1y", fractions=shares)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "2.5", "10"], "number"),
        (["2024-01-31", "2024-02-01", "2024-02-05"], "date"),
        (["2024-01-31 12:00", "2024-02-01 12:00", "2024-02-05 13:00"], "datetime"),
        (["2024-01-31T12:00:00.5", "2024-02-01T12:00:01", "2024-02-05T13:00:00"], "datetime"),
        (["2024-01-31T12:00:00Z", "2024-01-31T13:00:00+02:00", "2024-02-05T13:00:00Z"], "datetime"),
    ],
)
def test_times_in_texts(texts, kind):
    frame = pl.DataFrame({"t": texts, "y": [0.5, 1.5, 2.5]})
    dataset = Dataset.from_table(frame, time="t", fractions={"train": 0.5, "valid": 0.5})
    assert dataset.table.time.kind == kind
    if "+02:00" in texts[1]:  # which is an hour before noon
        assert dataset.restore(dataset.splits["valid"][0])[:, 0] == pytest.approx([1.5, 0.5, 2.5])


def test_training_is_cut_into_windows():
    dataset = Dataset.from_table(fleet(2, 50), id="ship", time="t", values=["lat"], window=15)
    assert dataset.lengths("train").tolist() == [15, 15, 10, 15, 15, 10]
    assert dataset.splits["train"].starts is None
    assert dataset.lengths("valid").tolist() == [45, 45]


def test_missing_tokens_and_kinds():
    frame = pl.DataFrame(
        {
            "a": ["1", "NA", " 2 ", "", "null", "3"] * 5,
            "b": ["x", "N/A", "y", None, "x", "y"] * 5,
            "c": ["1", "2", "1", "2", "3", "1"] * 5,
        }
    )
    dataset = Dataset.from_table(frame, kinds={"c": "category"})
    assert [(c.name, c.kind, c.categories) for c in dataset.columns] == [
        ("a", "count", ()),
        ("b", "category", ("x", "y")),
        ("c", "category", ("1", "2", "3")),
    ]
    mask = dataset.splits["train"].masks[0][:6]
    np.testing.assert_array_equal(mask[:, 0], [True, False, True, False, False, True])
    np.testing.assert_array_equal(mask[:, 1], [True, False, True, False, True, True])


def table(**changes):
    columns = {"ship": ["a"] * 6 + ["b"] * 6, "t": [*range(6)] * 2, "y": np.arange(12) / 3, "z": ["u", "v"] * 6}
    return pl.DataFrame(columns | changes, strict=False)


@pytest.mark.parametrize(
    ("changes", "options", "part"),
    [
        ({}, {"values": ["nope"]}, "must have a column 'nope', but it has 'ship', 't', 'y', 'z'"),
        ({}, {"id": "nope"}, "must have a column 'nope'"),
        ({}, {"values": "y"}, "`values` must be a list of columns, got the text 'y'"),
        ({}, {"values": []}, "at least one column of values"),
        ({}, {"values": ["y", "t"]}, "'t' is named twice"),
        ({}, {"kinds": {"nope": "real"}}, "`kinds` must be for columns that are used, got 'nope'"),
        ({}, {"kinds": {"y": "vague"}}, "must be one of real, count, binary, category, got 'vague'"),
        ({}, {"kinds": {"z": "real"}}, "'z' is said to be a real, so every cell of it must be one or empty, got 'u'"),
        ({}, {"kinds": {"y": "count"}}, "the count column 'y' must hold whole numbers from 0 to 16,777,216, got 0.33"),
        ({}, {"kinds": {"y": "binary"}}, "the binary column 'y' must hold 0 or 1, got 0.33"),
        ({"y": ["1", "2", "x\x1b[2J"] * 4}, {}, "column 'y' holds numbers, so every cell of it must be one or empty, "
         "got 'x\\x1b[2J' in row 3"),
        ({"y": [1.0, np.inf] * 6}, {}, "column 'y' must hold finite numbers, got inf in row 2"),
        ({"y": [1.0, 1e300] * 6}, {}, "column 'y' must hold numbers whose squares are finite"),
        ({"y": [None] * 12}, {}, "column 'y' must have a value in train"),
        ({"y": [dt.date(2024, 1, 1)] * 12}, {}, "column 'y' must hold numbers or texts, but its cells are date"),
        ({"y": [[1, 2]] * 12}, {}, "column 'y' must hold numbers or texts, but its cells are list"),
        ({"t": [0, 0, *range(4)] * 2}, {}, "rows 1 and 2 of 'a' have the same"),
        ({"t": [None, *range(5)] * 2}, {}, "the time 't' must be in every row, but it is missing in row 1"),
        ({"t": ["", *"12345"] * 2}, {}, "it is missing in row 1"),
        ({"t": [np.nan, *range(5)] * 2}, {}, "from -2^53 to 2^53, where whole numbers are exact, got nan in row 1"),
        ({"t": ["2024-01-01", "01/02/2024"] * 6}, {}, "got '01/02/2024' in row 2"),
        ({"t": ["soon"] * 12}, {}, "got 'soon' in row 1"),
        ({"t": [True] * 12}, {}, "must be numbers, dates or times, got boolean"),
        ({"ship": [None] * 6 + ["b"] * 6}, {}, "the id 'ship' must be in every row, but it is missing in row 1"),
        ({"ship": [0.5] * 12}, {}, "the id 'ship' must be texts or whole numbers, got float64"),
        ({}, {"static": ["z"], "values": ["y"]}, "rows 1 and 2 of 'a' differ"),
        ({}, {"every": "10min"}, "`every` must be a positive number, as the time of this table is, got '10min'"),
        ({}, {"every": -1}, "`every` must be a positive number"),
        ({}, {"every": 1, "time": None, "values": ["y"]}, "needs the column of time"),
        ({}, {"split": "nope"}, "must have a column 'nope'"),
        ({}, {"fractions": {"train": 1.0}}, "must leave something for train and for valid"),
        ({}, {"fractions": {"train": 0.5, "valid": 0.2}}, "have the sum 1"),
        ({}, {"fractions": {"train": 0.5, "dev": 0.5}}, "got 'dev'"),
        ({}, {"fractions": {"train": 0.5, "valid": 0.5}, "split": "z"}, "`fractions` are of no use"),
        ({}, {"split": "series"}, "needs at least 3 of them, got 2"),
        ({}, {"seed": -1}, "`seed` must be a whole number from 0"),
        ({}, {"window": 0}, "`window` must be a positive number of steps"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(changes, options, part):
    given = {"id": "ship", "time": "t"} | options
    with pytest.raises(InputError) as refused:
        Dataset.from_table(table(**changes), **given)
    assert_one_sentence(refused.value, part)


def test_decimal_commas_are_no_categories():
    frame = pl.DataFrame({"y": [f"{i},5" for i in range(2_000)]})
    with pytest.raises(InputError) as refused:
        Dataset.from_table(frame)
    assert_one_sentence(refused.value, "different texts, such as '0,5'", "decimal point")


def test_too_few_rows_to_split():
    with pytest.raises(InputError) as refused:
        Dataset.from_table(pl.DataFrame({"y": [0.5, 1.5]}))
    assert_one_sentence(refused.value, "the valid split must have at least one row")


def test_a_thousand_series_take_seconds(tmp_path):
    import time

    frame = fleet(1_000, 1_000).select("ship", "t", "lat", "lon", "hits")
    frame.write_csv(tmp_path / "big.csv")
    begin = time.monotonic()
    dataset = Dataset.from_table(tmp_path / "big.csv", id="ship", time="t")
    assert dataset.counts["train"] == (800, 800_000)
    assert time.monotonic() - begin < 30  # 3 s on an idle core
