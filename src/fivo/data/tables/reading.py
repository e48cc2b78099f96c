"""Tables from files: CSV, Parquet, Arrow, or a folder of such files; nothing is guessed about their cells here."""

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fivo.data.budget import CELL_BYTES, Budget
from fivo.data.compression import read_bounded
from fivo.data.foreign import shown
from fivo.data.places import expanded, files_below, walk_files
from fivo.data.tables.backend import Frame, as_polars, polars, pyarrow, refusing_table
from fivo.errors import InputError

TEXTS = (".csv", ".tsv")
PARQUETS = (".parquet", ".pq")
ARROWS = (".arrow", ".feather", ".ipc")
SUFFIXES = (*TEXTS, *PARQUETS, *ARROWS, *(f"{suffix}{packed}" for suffix in TEXTS for packed in (".gz", ".xz")))
FILE = "file"
"""The column that says which file of a folder a row is from."""
SEPARATORS = (",", ";", "\t", "|")
HEADER_BYTES = 1 << 16
_FEATHER_V1 = b"FEA1"
_SOUNDS = (".mid", ".midi", ".wav", ".flac")  # collections of music and speech often come with a table about them


def is_table(path: str | Path) -> bool:
    """Whether a path is one that `read_table` reads.

    Args:
        path: A file, judged by its name, or a folder.

    Returns:
        True for tables and for folders of tables without recordings.
    """
    if os.path.isdir(expanded(path)):
        table, sound = (next(walk_files(expanded(path), suffixes), None) for suffixes in (SUFFIXES, _SOUNDS))
        return table is not None and sound is None
    return str(path).lower().endswith(SUFFIXES)


def read_table(path: str | Path) -> Frame:
    """A table as a `polars.DataFrame`.

    Args:
        path: a .csv or .tsv (also .gz or .xz), a .parquet, an .arrow (.feather, .ipc), or a folder of such files with
            the same columns, which get another column `file` with the name of the file that a row is from.

    Returns:
        The table; every cell of a CSV is text, exactly as in the file, and an empty one is null.
    """
    polars()
    path = expanded(path)
    budget = Budget(path)
    if not os.path.isdir(path):
        if not is_table(path) and os.path.exists(path):
            raise InputError(f"{path} must end in {', '.join(SUFFIXES[:7])}, or be a folder of such files.")
        return _read(path, budget)
    files = files_below(path, SUFFIXES)
    if not files:
        raise InputError(f"{path} holds no table ({', '.join(SUFFIXES[:7])}); add some.")
    budget.spend_sequences(len(files))
    return _joined([_read(file, budget) for file in files], [file.relative_to(path) for file in files], path)


def as_table(table: object) -> Frame:
    """Read anything that represents a table.

    Args:
        table: A path, or a frame of pandas, polars or pyarrow.

    Returns:
        A polars frame.
    """
    frame = read_table(table) if isinstance(table, str | Path) else as_polars(table)
    if not frame.height or not frame.width:
        where = table if isinstance(table, str | Path) else "the table"
        raise InputError(f"{where} must have at least one row, got {frame.height} rows of {frame.width} columns.")
    return frame


def _read(path: Path, budget: Budget) -> Frame:
    content = read_bounded(path, budget)
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    if name.endswith(TEXTS):
        return _csv(content, str(path), budget)
    if content.startswith(_FEATHER_V1):
        raise InputError(f"{path} is a Feather file of version 1, which is not read; save it as Parquet.")
    pieces = _parquet if name.endswith(PARQUETS) else _arrow
    what = "Parquet file" if name.endswith(PARQUETS) else "Arrow file"
    # Not by polars: a damaged Parquet file can abort its process, and pyarrow knows what a row group becomes.
    pa, pl = pyarrow(), polars()
    with refusing_table(str(path), what, "get a fresh copy"):
        batches = list(pieces(content, budget))
        if not batches:
            raise InputError(f"{path} must have at least one row, but it is empty.")
        table = pa.concat_tables(batches)
        table.validate(full=True)
        return pl.from_arrow(table)


def _parquet(content: bytes, budget: Budget) -> Iterator[Any]:
    pyarrow()
    from pyarrow import parquet

    file = parquet.ParquetFile(io.BytesIO(content))
    facts = file.metadata
    budget.spend(facts.num_rows * facts.num_columns * CELL_BYTES)
    for index in range(facts.num_row_groups):
        budget.spend(facts.row_group(index).total_byte_size)
    for index in range(facts.num_row_groups):
        yield file.read_row_group(index, use_threads=False)


def _arrow(content: bytes, budget: Budget) -> Iterator[Any]:
    pa = pyarrow()
    from pyarrow import ipc

    file = ipc.open_file(io.BytesIO(content))
    for index in range(file.num_record_batches):
        batch = file.get_batch(index)
        budget.spend(batch.nbytes + batch.num_rows * batch.num_columns * CELL_BYTES)
        yield pa.Table.from_batches([batch])


def _csv(content: bytes, where: str, budget: Budget) -> Frame:
    content = content.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n ")
    if not content:
        raise InputError(f"{where} must have a header and at least one row, but it is empty.")
    header, separator = _header(content, where)
    cells = (content.count(b"\n") + content.count(b"\r") + 1) * len(header)
    budget.spend(cells * CELL_BYTES + len(content))
    pl = polars()
    with refusing_table(where, "CSV file", "save it as UTF-8 with as many cells in every row as the header has"):
        frame = pl.read_csv(io.BytesIO(content), separator=separator, infer_schema=False)
        frame.columns = header
        return frame


def _header(content: bytes, where: str) -> tuple[list[str], str]:
    """Names of the columns, and what separates them: what the first line has most of."""
    with refusing_table(where, "CSV file", "save it as UTF-8"):
        line = content[:HEADER_BYTES].splitlines()[0].decode()
        separator = max(SEPARATORS, key=line.count)
        names = [name.strip() for name in next(csv.reader([line], delimiter=separator))]
    empty = next((index for index, name in enumerate(names) if not name), None)
    if empty is not None:
        raise InputError(
            f"{where} must have a header with a name for every column, but that of column {empty + 1} is empty."
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{where} must have columns of different names, but {shown(twice)} comes twice; rename one.")
    return names, separator


def _joined(frames: list[Frame], files: list[Path], folder: Path) -> Frame:
    pl = polars()
    names = frames[0].columns
    for frame, file in zip(frames, files, strict=True):
        if sorted(frame.columns) != sorted(names):
            odd = sorted(set(frame.columns) ^ set(names))[0]
            raise InputError(
                f"the files in {folder} must have the same columns, but {shown(odd)} is in only one of {files[0]} and "
                f"{file}."
            )
    with refusing_table(str(folder), "folder of tables", "give each column one type in all files"):
        joined = pl.concat([frame.select(names) for frame in frames], how="vertical_relaxed")
        if FILE in names:
            return joined
        stems = [pl.Series(FILE, [str(file.with_suffix(""))]).new_from_index(0, frame.height) for frame, file in
                 zip(frames, files, strict=True)]  # fmt: skip
        return joined.with_columns(pl.concat(stems))
