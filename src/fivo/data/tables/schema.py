"""How a table was read: all that is needed to read another one the same way. It goes to JSON or TOML and back."""

from typing import Literal

import msgspec

from fivo.data.columns import Column, ColumnKind

VERSION = 1
TimeKind = Literal["rows", "number", "date", "datetime"]
StepUnit = Literal["number", "second", "month"]
SplitKind = Literal["time", "series", "column"]


class TableColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A column of the table that is used.

    Args:
        name: as the table calls it.
        kind: what its cells are.
        shift: what is subtracted from its numbers before they are divided by `scale`.
        scale: see `shift`; (0, 1) for columns that are not scaled.
        categories: the texts of a category column.
        mean: of the numbers in train, as measured; 0 for categories.
        deviation: standard deviation of the same; 1 if nothing varies.
    """

    name: str
    kind: ColumnKind
    shift: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def column(self) -> Column:
        """As a column of a dataset's frames."""
        return Column(self.name, self.kind, self.shift, self.scale, self.categories)

    @property
    def inputs(self) -> tuple[Column, ...]:
        """As columns of a dataset's inputs: categories are one-hot."""
        if self.kind != "category":
            return (Column(self.name, self.kind, self.shift, self.scale),)
        return tuple(Column(f"{self.name}={label}", "binary") for label in self.categories)


class TimeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What time is.

    Args:
        kind: `rows` (no time column: the order of the rows), `number`, `date` or `datetime`.
        step: how far apart the rows of a series are, in `unit`: always, if `regular`, else in the middle.
        unit: `number`, `second` (of dates and times) or `month`.
        regular: whether all rows of a series are one step apart.
        every: the grid that rows are put on, such as "10min"; None for none.
    """

    kind: TimeKind
    step: float = 1.0
    unit: StepUnit = "number"
    regular: bool = True
    every: str | None = None


class SplitRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What made the splits.

    Args:
        kind: `time` (within each series, the latest steps are held out), `series` (some series are), or `column`.
        column: the column that names the split of each row, for `column`.
        fractions: shares of train, valid, calibrate and test.
        seed: what series were drawn with.
    """

    kind: SplitKind
    column: str | None = None
    fractions: dict[str, float] = {}
    seed: int = 0


class TableSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a table was read.

    Args:
        values: the columns that are modelled.
        time: what time is.
        split: what made the splits.
        inputs: columns of known quantities that are not modelled.
        static: columns that are constant within a series, known quantities too.
        gap: the time since the row before, an input of tables whose time is irregular; None for others.
        id: the column that says which series a row belongs to; None for one series.
        time_column: the column of time; None for the order of the rows.
        rows: rows of each split, without context.
        series: series of each split.
        version: of this description.
    """

    values: tuple[TableColumn, ...]
    time: TimeRule
    split: SplitRule
    inputs: tuple[TableColumn, ...] = ()
    static: tuple[TableColumn, ...] = ()
    gap: TableColumn | None = None
    id: str | None = None
    time_column: str | None = None
    rows: dict[str, int] = {}
    series: dict[str, int] = {}
    version: int = VERSION

    @property
    def columns(self) -> tuple[Column, ...]:
        """What a frame of the model is made of."""
        return tuple(value.column for value in self.values)

    @property
    def input_columns(self) -> tuple[Column, ...]:
        """What the model's inputs are made of: inputs, static attributes, the gap."""
        known = (*self.inputs, *self.static, *(() if self.gap is None else (self.gap,)))
        return tuple(column for given in known for column in given.inputs)
