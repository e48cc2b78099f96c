"""A run's directory and typed records of everything written there, without JAX.

Records have a version, a checksum and the id of their run; what is damaged or of another run is refused in a sentence.
"""

from fivo.runs._checking import FileStatus, check_run
from fivo.runs._checkpoints import Best, Progress
from fivo.runs._directory import CONFIG, RunDirectory
from fivo.runs._excerpt import EXCERPT, Excerpt, read_excerpt, write_excerpt
from fivo.runs._forecasting import Backtest, Candidate, ColumnScores, ForecastScores, Selection, WindowScores
from fivo.runs._metrics import Row, last_row
from fivo.runs._records import (
    DRAWINGS,
    Alarms,
    BoundScore,
    Diagnosis,
    DiagnosisRow,
    Drawing,
    Evaluations,
    FilledGaps,
    Forecasts,
    LatentStates,
    Provenance,
    Relative,
    Reported,
    Result,
    Sandwich,
    Score,
    TableRecord,
    TrackRecord,
    Verdict,
)
from fivo.runs._sealing import FORMAT, Record, encode_record, read_record, write_record
from fivo.runs._settings import RECORD
from fivo.runs._summary import Summary, UnreadableError, average_of, read_summary

__all__ = [
    "CONFIG",
    "DRAWINGS",
    "EXCERPT",
    "FORMAT",
    "RECORD",
    "Alarms",
    "Backtest",
    "Best",
    "BoundScore",
    "Candidate",
    "ColumnScores",
    "Diagnosis",
    "DiagnosisRow",
    "Drawing",
    "Evaluations",
    "Excerpt",
    "FileStatus",
    "FilledGaps",
    "ForecastScores",
    "Forecasts",
    "LatentStates",
    "Progress",
    "Provenance",
    "Record",
    "Relative",
    "Reported",
    "Result",
    "Row",
    "RunDirectory",
    "Sandwich",
    "Score",
    "Selection",
    "Summary",
    "TableRecord",
    "TrackRecord",
    "UnreadableError",
    "Verdict",
    "WindowScores",
    "average_of",
    "check_run",
    "encode_record",
    "last_row",
    "read_excerpt",
    "read_record",
    "read_summary",
    "write_excerpt",
    "write_record",
]
