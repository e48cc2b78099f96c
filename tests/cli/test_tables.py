"""`fivo data check my.csv`: what is in a table, before anything is trained."""

import pytest

pytest.importorskip("polars")

from tests.cli.commands import run
from tests.data.tables.made import fleet, pl


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


def test_a_table_is_shown(capsys, tmp_path):
    path = tmp_path / "fleet.csv"
    fleet(3, 20, missing=0.2).with_columns(pl.lit("x").alias("[red]\x1b[2J")).write_csv(path)
    outcome = run(capsys, "data", "check", path, "--id", "ship", "--time", "t", "--inputs", "wind", "--static", "type")
    assert outcome.code == 0, outcome.err
    assert "60 rows, 3 series of 20 to 20 rows, time from 0 to 19, in steps of 1" in outcome.out.replace("\n", " ")
    for word in ("lat", "real", "hits", "count", "input", "static", "category", "yacht", "%)"):
        assert word in outcome.out
    assert "[red]\\x1b[2J" in outcome.out
    assert "\x1b" not in outcome.out


def test_irregular_dates_and_one_series(capsys, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("when,y\n2024-01-01,1.5\n2024-01-02,\n2024-01-09,2\n")
    outcome = run(capsys, "data", "check", path, "--time", "when")
    assert "3 rows, one series, time from 2024-01-01 to 2024-01-09, irregular" in outcome.out
    assert "1 (33.3%)" in outcome.out


@pytest.mark.parametrize(
    ("content", "options", "part"),
    [
        (
            "a,b\n1,x\n2,3\n",
            (),
            "column 'b' holds numbers, so every cell of it must be one or empty, got 'x' in row 1.",
        ),
        ("a,b\n1,x\n", ("--time", "c"), "must have a column 'c'"),
        ("a,b\n1,2\n1,3\n", ("--time", "a"), "rows 1 and 2 have the same"),
        ("", (), "is empty"),
    ],
)
def test_mistakes_are_one_sentence(capsys, tmp_path, content, options, part):
    path = tmp_path / "a.csv"
    path.write_text(content)
    outcome = run(capsys, "data", "check", path, *options)
    assert outcome.code == 2
    assert part in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_columns_are_for_tables(capsys):
    outcome = run(capsys, "data", "check", "bach", "--id", "ship")
    assert outcome.code == 2
    assert "--id is for tables" in outcome.err
