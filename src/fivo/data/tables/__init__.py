"""Tables: read, laid out as series, split, described, applied again, and written. polars is imported only when used."""

from fivo.data.tables.backend import as_given
from fivo.data.tables.layout import times_after
from fivo.data.tables.overview import ColumnOverview, TableOverview, check_table
from fivo.data.tables.reading import as_table, is_table, read_table
from fivo.data.tables.rows import RowPast, RowReader, RowStep
from fivo.data.tables.schema import SplitRule, TableColumn, TableSchema, TimeRule
from fivo.data.tables.sequences import TableSequences, apply_schema
from fivo.data.tables.splitting import split_labels
from fivo.data.tables.writing import check_place, write_table

__all__ = [
    "ColumnOverview",
    "RowPast",
    "RowReader",
    "RowStep",
    "SplitRule",
    "TableColumn",
    "TableOverview",
    "TableSchema",
    "TableSequences",
    "TimeRule",
    "apply_schema",
    "as_given",
    "as_table",
    "check_place",
    "check_table",
    "is_table",
    "read_table",
    "split_labels",
    "times_after",
    "write_table",
]
