"""Every command on tables refuses every kind of wrong table in one sentence, with exit code 2, and writes nothing."""

import os

import polars as pl
import pytest

from fivo.cli import main
from tests.cli.test_rows import FIT, SHORT, SPLITS, ships
from tests.sentences import assert_one_sentence

STATIC = ("--static", "type")
COMMANDS = {
    "score": (),
    "filter": (),
    "smooth": (),
    "impute": (),
    "forecast": ("--horizon", "2", "--inputs-from", "{future}"),
    "anomaly": ("--rate", "0.3"),
}
HUGE = 10 << 30


def run(*arguments):
    main([str(argument) for argument in arguments])


def typed(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(type=pl.lit("cargo"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    typed(ships()).write_csv(folder / "ships.csv")
    typed(ships(steps=18)).write_csv(folder / "future.csv")
    run("fit", folder / "ships.csv", *FIT, *STATIC, *SHORT, *SPLITS, "--out", folder / "run")
    return folder


def of_table(change):
    return lambda path: change(typed(ships())).write_csv(path)


def huge(path):
    path.write_bytes(b"ship,t,lat,speed,wind,type\n")
    os.truncate(path, HUGE)  # sparse: it takes no space


WRONG = {
    "a column that is not there": (".csv", of_table(lambda t: t.drop("speed")), ["'speed'"]),
    "text in a number column": (
        ".csv",
        of_table(lambda t: t.with_columns(pl.col("speed").cast(pl.String)).with_columns(
            speed=pl.when(pl.col("t") == 3).then(pl.lit("fast")).otherwise(pl.col("speed")))),
        ["'speed'", "'fast'"],
    ),
    "duplicate times": (".csv", of_table(lambda t: pl.concat([t, t.head(1)])), ["the same"]),
    "a new category": (".csv", of_table(lambda t: t.with_columns(type=pl.lit("submarine"))), ["'submarine'"]),
    "an empty file": (".csv", lambda path: path.touch(), ["empty"]),
    "a header alone": (".csv", of_table(lambda t: t.head(0)), ["at least one row"]),
    "a file of 10 GB": (".csv", huge, ["GiB"]),
    "a Parquet file of 10 GB": (".parquet", huge, ["GiB"]),
    "a damaged Parquet file": (".parquet", lambda path: path.write_bytes(b"PAR1" + bytes(200)), ["Parquet"]),
    "a damaged Arrow file": (".arrow", lambda path: path.write_bytes(b"ARROW1" + bytes(200)), ["Arrow"]),
    "a damaged archive": (".csv.gz", lambda path: path.write_bytes(b"\x1f\x8b" + bytes(60)), []),
    "bytes that are no text": (".csv", lambda path: path.write_bytes(b"ship,t\n\xff\xfe,\xff\n"), []),
    "no file": (".csv", lambda path: None, ["missing.csv"]),
    "escapes in a cell": (
        ".csv", of_table(lambda t: t.with_columns(type=pl.lit("=1+1\x1b[31m"))), ["\\x1b[31m"]
    ),
}  # fmt: skip


def refused(capsys, folder, *arguments):
    """The sentence of a command that ends with code 2 and leaves a folder as it was."""
    before = sorted(os.listdir(folder))
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2
    assert sorted(os.listdir(folder)) == before
    said = capsys.readouterr()
    assert "\x1b[31m" not in said.out + said.err
    assert said.out == ""
    return said.err.splitlines()[-1]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("suffix", "write", "parts"), WRONG.values(), ids=WRONG)
def test_a_wrong_table(place, tmp_path, capsys, command, suffix, write, parts):
    table = tmp_path / f"missing{suffix}"
    write(table)
    options = [option.format(future=place / "future.csv") for option in COMMANDS[command]]
    sentence = refused(capsys, tmp_path, command, place / "run", table, *options, "--out", tmp_path / "out.csv")
    assert_one_sentence(sentence, *parts)


@pytest.mark.parametrize(
    "case", ["a column that is not there", "duplicate times", "an empty file", "a file of 10 GB", "no file"]
)
@pytest.mark.parametrize("command", ["fit", "data check"])
def test_a_wrong_table_to_train_on(tmp_path, capsys, command, case):
    suffix, write, parts = WRONG[case]
    table = tmp_path / f"missing{suffix}"
    write(table)
    options = (*FIT, *SHORT, "--out", tmp_path / "run") if command == "fit" else FIT[:8]
    sentence = refused(capsys, tmp_path, *command.split(), table, *options)
    assert_one_sentence(sentence, *parts)


@pytest.mark.parametrize("command", [*COMMANDS, "export"])
def test_a_damaged_run(place, tmp_path, capsys, command):
    damaged = tmp_path / "run"
    damaged.mkdir()
    for file in (place / "run").iterdir():
        if file.is_file():
            content = file.read_bytes()
            flipped = content[:-9] + b"?????????" if file.suffix == ".safetensors" else content
            (damaged / file.name).write_bytes(flipped)
    options = [option.format(future=place / "future.csv") for option in COMMANDS.get(command, ())]
    table = () if command == "export" else (place / "ships.csv",)
    sentence = refused(capsys, tmp_path, command, damaged, *table, *options, "--out", tmp_path / "out.csv")
    assert_one_sentence(sentence, "damaged")


def test_ids_are_printed_and_written_as_texts(place, tmp_path, capsys):
    evil = {"s0": "=cmd()", "s1": "\x1b[31mred", "s2": "[bold]x"}
    typed(ships()).with_columns(pl.col("ship").replace(evil)).write_csv(tmp_path / "evil.csv")
    run("score", place / "run", tmp_path / "evil.csv", "--out", tmp_path / "out.csv")
    run("score", place / "run", tmp_path / "evil.csv", "--json")
    said = capsys.readouterr()
    assert "\x1b[31m" not in said.out + said.err
    assert "\\x1b[31mred" in said.out
    assert "[bold]x" in said.out
    written = (tmp_path / "out.csv").read_text()
    assert "\x1b" not in written
    assert "'=cmd()" in written
    assert not any(line.startswith("=") for line in written.splitlines())


@pytest.mark.parametrize("command", ["filter", "anomaly"])
def test_a_smoothing_model_is_not_filtered_row_by_row(place, tmp_path, capsys, command):
    if not (place / "smoothing").exists():
        model = ("--model", "vrnn", "--smoothing", "--hidden", "2", "--particles", "2", "--steps", "1")
        every = ("--validate-every", "1", "--log-every", "1")
        run("fit", place / "ships.csv", *FIT[:8], *SPLITS, *model, *every, "--out", place / "smoothing")
    out = tmp_path / "out.csv"
    options = ("--particles", "2", "--out", out, *COMMANDS[command])
    assert_one_sentence(
        refused(capsys, tmp_path, command, place / "smoothing", place / "ships.csv", *options), "future"
    )
