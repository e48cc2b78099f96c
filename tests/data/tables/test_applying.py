"""A new table, read as the one that a model was made from."""

import datetime as dt

import msgspec
import numpy as np
import pytest

from fivo.data import Dataset, TableSchema, TimeRule, apply_schema, times_after
from fivo.errors import InputError
from tests.data.tables.made import USES, fleet, pl
from tests.sentences import assert_one_sentence


@pytest.fixture(scope="module")
def schema():
    return Dataset.from_table(fleet(3, 60, missing=0.1), **USES).table


def test_the_same_table_gives_the_same_sequences():
    frame = fleet(3, 40, missing=0.1)
    dataset = Dataset.from_table(frame, **USES)
    read = apply_schema(dataset.table, frame)
    whole = dataset.splits["test"]
    assert read.ids == ["s0", "s1", "s2"]
    assert read.warnings == ()
    for index in range(3):
        np.testing.assert_array_equal(read.sequences[index], whole[index])
        np.testing.assert_array_equal(read.masks[index], whole.masks[index])
        np.testing.assert_array_equal(read.inputs[index], whole.inputs[index])
        np.testing.assert_array_equal(read.rows[index], np.arange(40) + 40 * index)
        np.testing.assert_array_equal(read.times[index], np.arange(40))
    assert read.split.masks is not None
    assert len(read.split[1:]) == 2


def test_every_step_knows_its_row():
    frame = fleet(2, 12)
    dataset = Dataset.from_table(frame, **USES)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    read = apply_schema(dataset.table, shuffled)
    for ship, rows, times, x in zip(read.ids, read.rows, read.times, read.sequences, strict=True):
        taken = shuffled[rows.tolist()]
        assert set(taken["ship"]) == {ship}
        np.testing.assert_array_equal(taken["t"], times)
        np.testing.assert_allclose(dataset.restore(x)[:, 1], taken["lon"], rtol=1e-5, atol=1e-5)


def test_a_grid_has_steps_without_a_row():
    frame = pl.DataFrame({"t": [0, 1, 2, 3, 6, 7, 8, 9], "y": np.arange(8) / 3})
    dataset = Dataset.from_table(frame, time="t", every=1)
    read = apply_schema(dataset.table, pl.DataFrame({"t": [7, 4], "y": [1.0, 2.0]}))
    assert read.rows[0].tolist() == [1, -1, -1, 0]
    assert read.times[0].tolist() == [4, 5, 6, 7]
    assert read.masks[0].ravel().tolist() == [True, False, False, True]


def test_it_goes_to_json_and_toml_and_back(schema):
    for module in (msgspec.json, msgspec.toml):
        assert module.decode(module.encode(schema), type=TableSchema) == schema
    regular = Dataset.from_table(fleet(1, 30).select("t", "lat"), time="t").table
    for module in (msgspec.json, msgspec.toml):
        assert module.decode(module.encode(regular), type=TableSchema) == regular
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(
            b'{"values": [], "time": {"kind": "number"}, "split": {"kind": "time"}, "x": 1}', type=TableSchema
        )


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda f: f.drop("lon"), "must have a column 'lon', but it has 'ship'"),
        (lambda f: f.drop("wind"), "must have a column 'wind'"),
        (lambda f: f.drop("ship"), "must have a column 'ship'"),
        (lambda f: f.drop("t"), "must have a column 't'"),
        (lambda f: f.with_columns(lat=pl.lit("=cmd()")), "column 'lat' is said to be a real", ),
        (lambda f: f.with_columns(type=pl.lit("submarine")), "column 'type' holds the category 'submarine' in row 1"),
        (lambda f: f.with_columns(hits=pl.lit(1.5)), "the count column 'hits' must hold whole numbers from 0"),
        (lambda f: f.with_columns(hits=-1 - pl.col("t")), "got -1 in row 1"),
        (lambda f: f.with_columns(wet=pl.lit(2)), "the binary column 'wet' must hold 0 or 1, got 2 in row 1"),
        (lambda f: f.with_columns(t=pl.lit(3)), "rows 1 and 2 of 's0' have the same"),
        (lambda f: f.with_columns(t=pl.date(2024, 1, 1) + pl.duration(days="t")), "must be numbers as it was"),
        (lambda f: f.head(0), "must have at least one row"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change, part, schema):
    with pytest.raises(InputError) as refused:
        apply_schema(schema, change(fleet(2, 10)))
    assert_one_sentence(refused.value, part)


def test_another_unit_is_a_warning_with_figures(schema):
    assert apply_schema(schema, fleet(3, 20, seed=5).with_columns(type=pl.lit("cargo"))).warnings == ()
    [warning] = apply_schema(schema, fleet(3, 20).with_columns(pl.col("lat") * 60, type=pl.lit("cargo"))).warnings
    assert_one_sentence(warning, "column 'lat' has mean", "and deviation 1", "in training; is it in another unit?")
    [warning] = apply_schema(
        schema, fleet(3, 20).with_columns(pl.col("wind") / 1000 + 10, type=pl.lit("cargo"))
    ).warnings
    assert_one_sentence(warning, "column 'wind'")
    [warning] = apply_schema(schema, fleet(3, 20).with_columns(pl.col("t") * 2, type=pl.lit("cargo"))).warnings
    assert "time must advance by 1 as it did in training, but here it does by 2 to 2" in warning


def test_missing_inputs_and_attributes(schema):
    frame = fleet(1, 6).with_columns(
        wind=pl.Series([None, 3.0, None, None, 5.0, None]), type=pl.Series([None, None, "cargo", None, None, None])
    )
    read = apply_schema(schema, frame)
    wind = schema.inputs[0]
    raw = read.inputs[0][:, 0] * wind.scale + wind.shift
    np.testing.assert_allclose(raw, [wind.mean, 3, 3, 3, 5, 5], rtol=1e-5)
    types = schema.static[0].categories
    assert (read.inputs[0][:, 1:] == (np.array(types) == "cargo")).all()
    nothing = frame.with_columns(type=pl.lit(None))
    assert not apply_schema(schema, nothing).inputs[0][:, 1:].any()


def test_the_times_that_follow():
    assert times_after(TimeRule("number", 0.5), 10.0, 3).tolist() == [10.5, 11.0, 11.5]
    hour = TimeRule("datetime", 3600, "second")
    assert times_after(hour, np.datetime64("2024-02-29T23:00", "us"), 2).tolist() == [
        dt.datetime(2024, 3, 1, 0),  # noqa: DTZ001
        dt.datetime(2024, 3, 1, 1),  # noqa: DTZ001
    ]
    month = TimeRule("date", 1, "month")

    def days(last):
        return times_after(month, np.datetime64(last, "us"), 3).astype("datetime64[D]").astype(str).tolist()

    assert days("2024-01-31") == ["2024-02-29", "2024-03-31", "2024-04-30"]
    assert days("2024-01-30") == ["2024-02-29", "2024-03-30", "2024-04-30"]
    assert days("2023-12-01") == ["2024-01-01", "2024-02-01", "2024-03-01"]
