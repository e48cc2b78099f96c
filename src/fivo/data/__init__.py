"""Datasets: readers, the sets known by name, and batching. Plain numpy."""

from fivo.data.bars import bars, bars_log_likelihood
from fivo.data.batches import Batches, Slots, evaluation_chunks
from fivo.data.buckets import choose_padded_lengths
from fivo.data.checking import Checked, Listed, check, list_datasets
from fivo.data.columns import Column
from fivo.data.dataset import Dataset
from fivo.data.facts import TableFacts
from fivo.data.fetching import Fetched, fetch
from fivo.data.loading import find, load
from fivo.data.midi import read_midi
from fivo.data.npz import save_npz
from fivo.data.padding import pad
from fivo.data.places import search_path
from fivo.data.registry import KNOWN
from fivo.data.sound import HIGHEST_NOTE, LOWEST_NOTE, Music, Scaling, Speech
from fivo.data.speech import TimitCheck, as_frames, as_samples, check_timit, read_at_rate, read_recording
from fivo.data.speech.timit import NAME as TIMIT
from fivo.data.splits import SPLITS, Split
from fivo.data.tables import (
    ColumnOverview,
    RowPast,
    RowReader,
    RowStep,
    SplitRule,
    TableColumn,
    TableOverview,
    TableSchema,
    TableSequences,
    TimeRule,
    apply_schema,
    as_given,
    as_table,
    check_place,
    check_table,
    is_table,
    read_table,
    split_labels,
    times_after,
    write_table,
)
from fivo.data.vessels import vessel_tracks

__all__ = [
    "HIGHEST_NOTE",
    "KNOWN",
    "LOWEST_NOTE",
    "SPLITS",
    "TIMIT",
    "Batches",
    "Checked",
    "Column",
    "ColumnOverview",
    "Dataset",
    "Fetched",
    "Listed",
    "Music",
    "RowPast",
    "RowReader",
    "RowStep",
    "Scaling",
    "Slots",
    "Speech",
    "Split",
    "SplitRule",
    "TableColumn",
    "TableFacts",
    "TableOverview",
    "TableSchema",
    "TableSequences",
    "TimeRule",
    "TimitCheck",
    "apply_schema",
    "as_frames",
    "as_given",
    "as_samples",
    "as_table",
    "bars",
    "bars_log_likelihood",
    "check",
    "check_place",
    "check_table",
    "check_timit",
    "choose_padded_lengths",
    "evaluation_chunks",
    "fetch",
    "find",
    "is_table",
    "list_datasets",
    "load",
    "pad",
    "read_at_rate",
    "read_midi",
    "read_recording",
    "read_table",
    "save_npz",
    "search_path",
    "split_labels",
    "times_after",
    "vessel_tracks",
    "write_table",
]
