"""The libraries of tables, which the extra `app` brings.

polars reads CSV and computes, pyarrow reads Parquet and Arrow files, narwhals takes others' frames.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fivo.data.foreign import reason
from fivo.errors import InputError

Frame = Any
"""A `polars.DataFrame`; the name stands for it where polars is not imported."""
Series = Any
"""A `polars.Series`."""


def polars() -> Any:
    """The module, or the sentence that says how to get it."""
    try:
        import polars
    except ImportError as error:
        raise _missing() from error
    return polars


def pyarrow() -> Any:
    """The module, which reads Parquet and Arrow files."""
    try:
        import pyarrow
    except ImportError as error:
        raise _missing() from error
    return pyarrow


def as_polars(frame: Any) -> Frame:
    """A pandas, polars or pyarrow frame as a `polars.DataFrame`; a lazy one is computed."""
    pl = polars()
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    try:
        import narwhals
    except ImportError as error:
        raise _missing() from error
    try:
        known = narwhals.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"a table must be a path or a pandas, polars or pyarrow frame, got a {type(frame).__name__}."
        ) from error
    with refusing_table("the frame", "frame of numbers and texts", "convert its columns first"):
        return known.to_polars()


def as_given(frame: Frame, given: Any, *, same_rows: bool = False) -> Any:
    """A table as the kind of frame that a user gave.

    Args:
        frame: A `polars.DataFrame`.
        given: A pandas, polars or pyarrow frame; None for none, then the table stays as it is.
        same_rows: Whether the rows are those of `given`, whose index they then keep.

    Returns:
        A pandas, polars or pyarrow frame.
    """
    pl = polars()
    if given is None or isinstance(given, pl.DataFrame | pl.LazyFrame):
        return frame
    import narwhals

    kind = narwhals.from_native(given, eager_only=True).implementation
    if kind.is_pyarrow():
        return frame.to_arrow()
    if not kind.is_pandas_like():
        return frame
    made = frame.to_pandas()
    if same_rows:
        made.index = given.index
    return made


@contextmanager
def refusing_table(where: str, what: str, advice: str) -> Iterator[None]:
    """Any exception of polars in the block, its panics included, becomes one sentence."""
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # what polars calls a panic is no `Exception`
        first = (
            next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        )  # advice for programmers follows
        raise InputError(f"{where} is not a readable {what} ({reason(first)}); {advice}.") from error


def _missing() -> InputError:
    return InputError(
        "tables need polars, narwhals and pyarrow, which are not all installed; run `pip install 'fivo[app]'`."
    )
