"""Tables from files of every kind."""

import gzip
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivo.data import Dataset, check_table, is_table, read_table
from fivo.errors import InputError
from tests.data.tables.made import USES, fleet, pl
from tests.sentences import assert_one_sentence


def written(frame, path):
    writer = {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".arrow": frame.write_ipc}[path.suffix]
    writer(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_every_format_gives_the_same_dataset(suffix, tmp_path):
    frame = fleet(missing=0.1)
    expected = Dataset.from_table(frame, **USES)
    path = written(frame, tmp_path / f"fleet{suffix}")
    read = Dataset.from_table(path, **USES, kinds={"wet": "binary"} if suffix != ".csv" else {})
    if suffix == ".csv":  # a CSV says true and false, which are texts
        assert read.columns[3].categories == ("false", "true")
    else:
        assert read.fingerprint == expected.fingerprint
    assert read.columns[:3] == expected.columns[:3]
    assert read.name == "fleet"
    assert is_table(path)


def test_frames_of_others():
    frame = fleet(missing=0.1)
    expected = Dataset.from_table(frame, **USES).fingerprint
    assert Dataset.from_table(frame.to_pandas(), **USES).fingerprint == expected
    assert Dataset.from_table(frame.to_arrow(), **USES).fingerprint == expected
    assert Dataset.from_table(frame.lazy(), **USES).fingerprint == expected
    with pytest.raises(InputError) as refused:
        Dataset.from_table([1, 2, 3])
    assert_one_sentence(refused.value, "must be a path or a pandas, polars or pyarrow frame, got a list")


def test_texts_stay_as_they_are(tmp_path):
    (tmp_path / "a.csv").write_text('id,"x, y"\n007, 1.50 \n008,"two\nlines"\n')
    assert read_table(tmp_path / "a.csv").to_dict(as_series=False) == {
        "id": ["007", "008"],
        "x, y": [" 1.50 ", "two\nlines"],
    }
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfa;b\r\n1,5;2\r\n\r\n")
    assert read_table(tmp_path / "b.csv").to_dict(as_series=False) == {"a": ["1,5"], "b": ["2"]}
    (tmp_path / "c.tsv.gz").write_bytes(gzip.compress(b"a\tb\n1\t\n"))
    assert read_table(tmp_path / "c.tsv.gz").to_dict(as_series=False) == {"a": ["1"], "b": [None]}


def test_a_folder_of_files(tmp_path):
    frame = fleet(4)
    for ship in ("s1", "s0", "s3"):
        written(frame.filter(pl.col("ship") == ship).drop("ship"), tmp_path / f"{ship}.csv")
    read = read_table(tmp_path)
    assert read.height == 90
    assert read["file"].unique().sort().to_list() == ["s0", "s1", "s3"]
    assert check_table(tmp_path, id="file", time="t").lengths == (30, 30, 30)
    assert is_table(tmp_path)
    (tmp_path / "piece.mid").write_bytes(b"")
    assert not is_table(tmp_path)
    (tmp_path / "s9.csv").write_text("t,other\n1,2\n")
    with pytest.raises(InputError) as refused:
        read_table(tmp_path)
    assert_one_sentence(refused.value, "must have the same columns", "s9.csv")


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.csv", b"", "it is empty"),
        ("a.csv", b"\n\n", "it is empty"),
        ("a.csv", b"a,b\n", "must have at least one row"),
        ("a.csv", b"a,b\n1,2,3\n", "not a readable CSV file"),
        ("a.csv", b"a,,c\n1,2,3\n", "that of column 2 is empty"),
        ("a.csv", b"a,a\n1,2\n", "'a' comes twice"),
        ("a.csv", b"a,b\n1,\xff\n", "save it as UTF-8"),
        ("a.csv", b"\xff,b\n1,2\n", "save it as UTF-8"),
        ("a.csv", b'a,b\n"1,2\n', "not a readable CSV file"),
        ("a.parquet", b"", "not a readable Parquet file"),
        ("a.parquet", b"PAR1" + bytes(100) + b"PAR1", "not a readable Parquet file"),
        ("a.arrow", b"", "not a readable Arrow file"),
        ("a.arrow", b"ARROW1" + bytes(50), "not a readable Arrow file"),
        ("a.feather", b"FEA1" + bytes(50), "version 1"),
        ("a.xlsx", b"PK", "must end in .csv"),
    ],
)
def test_damaged_files_are_one_sentence(name, content, part, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        check_table(str(tmp_path / name))
    assert_one_sentence(refused.value, part)


def test_what_is_not_there(tmp_path):
    for name in ("no.csv", "no.parquet"):
        with pytest.raises(InputError) as refused:
            read_table(tmp_path / name)
        assert_one_sentence(refused.value, "cannot be read")
    with pytest.raises(InputError, match="holds no table"):
        read_table(tmp_path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_ten_gigabytes_are_refused_before_they_are_read(suffix, tmp_path):
    with open(tmp_path / f"a{suffix}", "wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(InputError) as refused:
        Dataset.from_table(tmp_path / f"a{suffix}")
    assert_one_sentence(refused.value, "becomes more than 1 GiB in memory; split it up")


def test_small_files_that_become_large_are_refused(tmp_path, monkeypatch):
    frame = pl.DataFrame({"a": np.zeros(1_000_000), "b": np.zeros(1_000_000, np.int64)})
    written(frame, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    monkeypatch.setattr("fivo.data.budget.MEMORY", 8 << 20)
    with pytest.raises(InputError, match="becomes more than"):
        read_table(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_bytes(b"a,b,c,d,e,f,g,h\n" + b",,,,,,,\n" * 100_000)
    with pytest.raises(InputError, match="becomes more than"):
        read_table(tmp_path / "a.csv")
    sparse = pl.DataFrame({"t": [0.0, 1e12], "x": [1.0, 2.0]})
    with pytest.raises(InputError, match="becomes more than"):
        Dataset.from_table(sparse, time="t", every=1)


def test_an_address_is_not_fetched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for address in ("http://localhost:9/a.csv", "s3://bucket/a.parquet", "*.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            read_table(address)


@pytest.mark.parametrize(
    ("missing", "given"), [("polars", "'a.csv'"), ("narwhals", "object()"), ("pyarrow", "'a.parquet'")]
)
def test_without_the_extra_it_says_which(missing, given, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    code = (
        f"import os, sys; sys.modules[{missing!r}] = None; os.chdir({str(tmp_path)!r})\n"
        "import fivo.data\n"
        f"try: fivo.data.Dataset.from_table({given})\n"
        "except fivo.InputError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert_one_sentence(ran.stdout.strip(), "pip install 'fivo[app]'")


def test_importing_needs_neither(tmp_path):
    code = "import sys, fivo.data; print({'jax', 'polars', 'narwhals', 'pandas', 'pyarrow'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


LINES = st.lists(
    st.sampled_from(["1", "2.5", "a", "", "-3", "nan", '"', "\x1b[2J", "2024-01-01", "=1+1", "é"]), max_size=4
)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=60), st.lists(LINES, max_size=6).map(lambda rows: "\n".join(map(",".join, rows)).encode())
    )
)
def test_any_bytes_are_a_table_or_one_sentence(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(b"t,x,y\n" + content)
    for options in ({}, {"time": "t"}, {"id": "t"}, {"time": "t", "every": 1}):
        sentences = [sentence(Dataset.from_table, path, **options)]
        options.pop("every", None)
        sentences.append(sentence(check_table, path, **options))
        assert all(text.isprintable() for text in sentences)


def sentence(function, *arguments, **options):
    """Why a function refuses what it was given; nothing if it does not."""
    try:
        function(*arguments, **options)
    except InputError as error:
        return str(error)
    return ""
