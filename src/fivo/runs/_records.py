"""What training and evaluation write about a run."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fivo.runs._sealing import Record

Count = Annotated[int, Meta(ge=0)]


class Provenance(Record, frozen=True):
    """What trained a run: data, code and versions."""

    KIND: ClassVar[str] = "provenance"
    FILE: ClassVar[str] = "run.json"
    REMEDY: ClassVar[str] = "restore it from a copy, or train in another directory"

    dataset_fingerprint: str
    commit: str
    python: str
    versions: dict[str, str]


class TableRecord(Record, frozen=True):
    """How the table of a run was read, and what its model was built from: enough to use the run without the table."""

    KIND: ClassVar[str] = "table"
    FILE: ClassVar[str] = "table.json"
    REMEDY: ClassVar[str] = "restore it from a copy, or use the run where its table is"

    facts: dict[str, Any]


class Result(Record, frozen=True):
    """What training ended with."""

    KIND: ClassVar[str] = "result"
    FILE: ClassVar[str] = "result.json"
    REMEDY: ClassVar[str] = "run `fivo fit` with the run's settings to its end, which writes it anew"

    steps: Count
    best_step: Count
    best_validation: float
    stopped_early: bool
    seconds: float
    compilations: Count


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a record."""


class BoundScore(Part, frozen=True):
    """A bound on a split; `raw_nats_per_sequence` is that of data before they were standardised."""

    nats_per_step: float
    standard_error: float | None
    nats_per_sequence: float
    raw_nats_per_sequence: float | UnsetType = UNSET
    sequences: list[float] | UnsetType = UNSET


class Reported(Part, frozen=True):
    """The number that a paper would print."""

    bound: str
    nats_per_step: float


class Relative(Part, frozen=True):
    """How much better than a baseline."""

    to: str
    bound: str
    trained_with: str
    nats_per_sequence: float
    standard_error: float | None


class Score(Part, frozen=True):
    """The bounds of a run's best model on a split, as `evaluate` returns them."""

    split: str
    particles: int
    bounds: dict[str, BoundScore]
    reported: Reported
    mean_length: float
    dataset_fingerprint: str
    repeats: int
    seed: int
    resampling: str
    steps: int
    config: dict[str, Any]
    commit: str | UnsetType = UNSET
    relative: Relative | UnsetType = UNSET


class Evaluations(Record, frozen=True):
    """The scores that a sweep needs of a run, by split."""

    KIND: ClassVar[str] = "evaluations"
    FILE: ClassVar[str] = "evaluation.json"
    REMEDY: ClassVar[str] = "remove it, and `fivo sweep` scores the run again"

    splits: dict[str, Score]


class Sandwich(Part, frozen=True):
    """Lower and upper bounds on data simulated from the model."""

    lower: float
    upper: float
    gap: float
    standard_error: float


class DiagnosisRow(Part, frozen=True):
    """What one number of particles comes to; `over_time` has a value for every step."""

    particles: int
    bound: float
    standard_error: float
    relative_variance: float
    half_variance: float
    half_log_variance: float
    ess: float
    resampled: float
    kl: float
    ancestors: float
    over_time: dict[str, list[float]]
    sandwich: Sandwich


class Verdict(Part, frozen=True):
    """What limits the model, in a word and in sentences."""

    culprit: str
    sentences: list[str]


class Diagnosis(Record, frozen=True):
    """How tight a run's bound is, as `diagnose` returns it."""

    KIND: ClassVar[str] = "diagnosis"
    FILE: ClassVar[str] = "diagnosis/diagnosis.json"
    REMEDY: ClassVar[str] = "run `fivo diagnose` again"

    split: str
    sequences: list[int]
    seed: int
    steps: int
    own_particles: int
    repeats: int
    rows: list[DiagnosisRow]
    verdict: Verdict
    config: dict[str, Any]


Numbers = list[float | None]
"""None where there is no number."""


class TrackRecord(Part, frozen=True):
    """One quantity of one series over time, as `fivo.report.Track` has it.

    Args:
        series: Which series.
        quantity: What it is.
        times: Numbers, or texts of dates.
        observed: What was observed.
        mean: What the model expects.
        quantiles: Of that, by level.
        p_values: How ordinary the rows are.
    """

    series: str
    quantity: str
    times: list[float | str]
    observed: Numbers | None = None
    mean: Numbers | None = None
    quantiles: dict[str, Numbers] = {}
    p_values: Numbers | None = None


class Forecasts(Record, frozen=True):
    """What `fivo forecast` last drew of a run: a few series of a table, for its page.

    Args:
        table: The name of the table's file.
        time_label: What time is.
        tracks: What to draw.
    """

    KIND: ClassVar[str] = "forecast"
    FILE: ClassVar[str] = "forecast.json"
    REMEDY: ClassVar[str] = "remove it, or run `fivo forecast` again"

    table: str
    time_label: str
    tracks: list[TrackRecord]


class Alarms(Record, frozen=True):
    """What `fivo anomaly` last found with a run: the strangest series of a table, for its page.

    Args:
        table: The name of the table's file.
        time_label: What time is.
        rate: The false-alarm rate.
        tracks: What to draw.
    """

    KIND: ClassVar[str] = "alarms"
    FILE: ClassVar[str] = "anomaly.json"
    REMEDY: ClassVar[str] = "remove it, or run `fivo anomaly` again"

    table: str
    time_label: str
    rate: float
    tracks: list[TrackRecord]
