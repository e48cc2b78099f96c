"""What is written cannot be taken for a formula or for commands to a terminal."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivo.data import read_table, write_table
from fivo.errors import InputError
from tests.data.tables.made import fleet, pl
from tests.sentences import assert_one_sentence

DANGEROUS = [
    "=1+1",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "\rx",
    " =1+1",
    "\x1b[2J",
    "a\nb",
    "a\x9bb",
    "\u202ereversed",
]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_numbers_ids_and_times_stay_as_they_are(suffix, tmp_path):
    frame = fleet(2, 5, missing=0.3).with_columns(id=pl.Series(["007", "-5", "+1.5", "1e3", "-"] * 2))
    write_table(tmp_path / f"a{suffix}", frame)
    read = read_table(tmp_path / f"a{suffix}")
    if suffix == ".csv":
        assert read["id"].to_list()[:4] == ["007", "-5", "+1.5", "1e3"]
        assert read["id"][4] == "'-"
        np.testing.assert_array_equal(read["lon"].cast(pl.Float64), frame["lon"])
        assert read["lat"].null_count() == frame["lat"].null_count()
    else:
        assert read.equals(frame)
    assert [path.name for path in tmp_path.iterdir()] == [f"a{suffix}"]


def test_formulas_and_escapes(tmp_path):
    frame = pl.DataFrame({"note": [*DANGEROUS, "fine", None, "a=b"], "=name\x1b": range(len(DANGEROUS) + 3)})
    write_table(tmp_path / "a.csv", frame)
    text = (tmp_path / "a.csv").read_text()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["note", "'=name\\x1b"]
    notes = [row[0] for row in rows[1:]]
    assert notes[-3:] == ["fine", "", "a=b"]
    assert notes[:8] == ["'=1+1", "'+1+cmd|' /C calc'!A0", "'-2+3", "'@SUM(A1)", "'\\tx", "'\\rx", "' =1+1", "\\x1b[2J"]
    assert all(line.isprintable() for line in text.splitlines())
    write_table(tmp_path / "a.parquet", frame)
    stored = pl.read_parquet(tmp_path / "a.parquet")
    assert stored.columns[1] == "=name\\x1b"
    assert stored["note"][0] == "=1+1"
    assert stored["note"][7] == "\\x1b[2J"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_any_text_is_harmless(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    frame = pl.DataFrame({"t": [t.encode("utf-8", "replace").decode() for t in texts], "n": 1})
    write_table(path, frame)
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
    assert len(rows) == len(texts) + 1
    for (cell, _), text in zip(rows[1:], frame["t"], strict=True):
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in cell)
        if cell.lstrip()[:1] in tuple("=+-@"):
            float(cell)
        assert cell.lstrip("'")[:1] == text[:1] or not text.isprintable() or text.startswith("'")


def test_others_frames_and_formats(tmp_path):
    write_table(tmp_path / "a.csv", fleet(1, 3).to_pandas())
    write_table(tmp_path / "b.csv", fleet(1, 3))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    with pytest.raises(InputError) as refused:
        write_table(tmp_path / "a.xlsx", fleet(1, 3))
    assert_one_sentence(refused.value, "is written to a .csv, .parquet or .arrow file")
    with pytest.raises(InputError) as refused:
        write_table(tmp_path / "b.csv", pl.DataFrame({"a": [[1, 2]]}))
    assert_one_sentence(refused.value, "b.csv")
    assert len(read_table(tmp_path / "b.csv")) == 3


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError) as refused:
        write_table(tmp_path / "file" / "a.csv", fleet(1, 3))
    assert_one_sentence(refused.value, "cannot be written")
