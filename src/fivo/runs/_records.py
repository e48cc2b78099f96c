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


class ColumnScores(Part, frozen=True):
    """Scores of the forecasts of one column, in its units; null where a kind of column has no such score."""

    kind: str
    crps: float | None
    mae: float | None
    rmse: float | None
    coverage80: float | None
    coverage95: float | None
    brier: float | None
    log_mass: float | None


class ForecastScores(Part, frozen=True):
    """Scores of the forecasts of all columns together; errors in deviations of each column in train.

    `crps` is the mean over columns, of which categories have half their Brier score; `energy` is of rows without
    categories; `log_score` is log p(rows of a window | rows before it), nats per row in the table's units.
    """

    crps: float | None
    energy: float | None
    log_score: float | None
    mae: float | None
    rmse: float | None
    coverage80: float | None
    coverage95: float | None
    brier: float | None
    log_mass: float | None
    columns: dict[str, ColumnScores]


class WindowScores(Part, frozen=True):
    """Scores of one model in one window; `origin` is the time of the last row that the forecast knew."""

    model: str
    series: str
    origin: str
    crps: float | None
    energy: float | None
    log_score: float | None
    mae: float | None
    columns: dict[str, float | None]
    """The CRPS of every column, in its units; of categories half their Brier score."""


class Backtest(Record, frozen=True):
    """Forecasts of rows that were held out, scored beside those of simple models, as `backtest` returns it."""

    KIND: ClassVar[str] = "backtest"
    FILE: ClassVar[str] = "backtest.json"
    REMEDY: ClassVar[str] = "run `fivo backtest` again"

    data: str
    """The split that windows are of, or the table that was given."""
    series: Count
    windows: Count
    """Of each series."""
    horizon: Count
    season: Count
    samples: Count
    particles: Count
    seed: int
    steps: Count
    own: str
    """Which of the models is the run's own."""
    models: dict[str, ForecastScores]
    each: list[WindowScores]
    notes: list[str]
    config: dict[str, Any]


class Candidate(Part, frozen=True):
    """A model that was compared; scores are of forecasts of the validation rows."""

    name: str
    model: str
    crps: float
    log_score: float | None
    coverage80: float | None
    validation: float
    """The bound that chose its step, nats per step."""
    steps: Count
    seconds: float


class Selection(Record, frozen=True):
    """What the model of a run was chosen from, by the CRPS of forecasts of the validation rows."""

    KIND: ClassVar[str] = "selection"
    FILE: ClassVar[str] = "selection.json"
    REMEDY: ClassVar[str] = "restore it from a copy; the run itself does not need it"

    budget_seconds: float
    horizon: Count
    windows: Count
    chosen: str
    candidates: list[Candidate]
    naive_crps: float | None
    notes: list[str]
