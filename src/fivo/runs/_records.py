"""What training and evaluation write about a run."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fivo.runs._sealing import Record

Count = Annotated[int, Meta(ge=0)]


class Provenance(Record, frozen=True):
    """What trained a run: data, code and versions.

    Args:
        dataset_fingerprint: A digest of the data.
        commit: The commit of the checkout, with a `+` if files were changed; outside of one, this package's version.
        python: Python's version.
        versions: Versions of the packages that numbers depend on, by name.
    """

    KIND: ClassVar[str] = "provenance"
    FILE: ClassVar[str] = "run.json"
    REMEDY: ClassVar[str] = "restore it from a copy, or train in another directory"

    dataset_fingerprint: str
    commit: str
    python: str
    versions: dict[str, str]


class TableRecord(Record, frozen=True):
    """How the table of a run was read, and what its model was built from: enough to use the run without the table.

    Args:
        facts: `fivo.data.TableFacts` as plain values.
    """

    KIND: ClassVar[str] = "table"
    FILE: ClassVar[str] = "table.json"
    REMEDY: ClassVar[str] = "restore it from a copy, or use the run where its table is"

    facts: dict[str, Any]


class Result(Record, frozen=True):
    """What training ended with.

    Args:
        steps: Optimizer steps that were taken.
        best_step: The step that was best on validation.
        best_validation: The bound of that step on validation, in nats per timestep.
        stopped_early: Whether validation had stopped improving before all steps were taken.
        seconds: Time that training took, over all sessions.
        compilations: Programs that were compiled for it.
    """

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
    """A bound on a split.

    Args:
        nats_per_step: The sum of log p̂ over the split, divided by the sum of lengths.
        standard_error: Of that, over repeated evaluations; None for a single one.
        nats_per_sequence: The average log p̂ of a sequence.
        raw_nats_per_sequence: The same for data as they were before they were standardised.
        sequences: log p̂ of every sequence.
    """

    nats_per_step: float
    standard_error: float | None
    nats_per_sequence: float
    raw_nats_per_sequence: float | UnsetType = UNSET
    sequences: list[float] | UnsetType = UNSET


class Reported(Part, frozen=True):
    """The number that a paper would print.

    Args:
        bound: Which bound it is.
        nats_per_step: Its value.
    """

    bound: str
    nats_per_step: float


class Relative(Part, frozen=True):
    """How much better than a baseline a run is.

    Args:
        to: The directory of the baseline.
        bound: The bound of the baseline that counts.
        trained_with: The bound that the baseline was trained with.
        nats_per_sequence: The difference of the two scores.
        standard_error: Of the difference; None where it is not known.
    """

    to: str
    bound: str
    trained_with: str
    nats_per_sequence: float
    standard_error: float | None


class Score(Part, frozen=True):
    """The bounds of a run's best model on a split, as `evaluate` returns them.

    Args:
        split: The split.
        particles: N of the bounds.
        bounds: The scores by the bounds' names.
        reported: What a paper would print.
        mean_length: The average length of a sequence.
        dataset_fingerprint: A digest of the data.
        repeats: Independent evaluations that were averaged.
        seed: Of the evaluations.
        resampling: The resampling scheme of FIVO.
        steps: The training step that the model is of.
        config: The settings of the run, by their flat names.
        commit: The commit of this package that evaluated it.
        relative: The difference to a baseline, if one was given.
    """

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
    """The scores that a sweep needs of a run.

    Args:
        splits: The scores by split.
    """

    KIND: ClassVar[str] = "evaluations"
    FILE: ClassVar[str] = "evaluation.json"
    REMEDY: ClassVar[str] = "remove it, and `fivo sweep` scores the run again"

    splits: dict[str, Score]


class Sandwich(Part, frozen=True):
    """Lower and upper bounds on the evidence of data simulated from the model.

    Args:
        lower: The average lower bound, in nats per timestep.
        upper: The average upper bound, in nats per timestep.
        gap: Their difference.
        standard_error: Of the gap.
    """

    lower: float
    upper: float
    gap: float
    standard_error: float


class DiagnosisRow(Part, frozen=True):
    """What one number of particles comes to; nats are per timestep.

    Args:
        particles: N.
        bound: FIVO_N.
        standard_error: Of the bound.
        relative_variance: The variance of p̂ / E[p̂], averaged over sequences.
        half_variance: Half of it, which estimates the gap to log p(x).
        half_log_variance: Half the variance of log p̂, another estimate of the gap.
        ess: The average effective sample size.
        resampled: The share of steps after which particles were resampled.
        kl: The average of log q_t - log p_t at the latents drawn.
        ancestors: The distinct ancestors that the final particles have, as a share of N, averaged over steps.
        over_time: The same quantities for every step, by name.
        sandwich: Bounds from both sides, on simulated data.
    """

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
    """What limits a model.

    Args:
        culprit: In a word: "proposal", "particles" or "model".
        sentences: In words.
    """

    culprit: str
    sentences: list[str]


class Diagnosis(Record, frozen=True):
    """How tight a run's bound is, as `diagnose` returns it.

    Args:
        split: The split that was looked at.
        sequences: Which of its sequences.
        seed: Random seed.
        steps: The training step that the model is of.
        own_particles: N that the run was trained with.
        repeats: Independent filters of every sequence.
        rows: What each number of particles comes to.
        verdict: What limits the model.
        config: The settings of the run, by their flat names.
    """

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
"""None marks a missing number."""


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


class Drawing(Record, frozen=True):
    """What a command on a table last drew of a run: a few series, for its page."""

    table: str
    """The name of the table's file."""
    time_label: str
    """What time is."""
    tracks: list[TrackRecord]
    """What to draw."""


class Forecasts(Drawing, frozen=True):
    """What `fivo forecast` last drew of a run."""

    KIND: ClassVar[str] = "forecast"
    FILE: ClassVar[str] = "forecast.json"
    REMEDY: ClassVar[str] = "remove it, or run `fivo forecast` again"


class FilledGaps(Drawing, frozen=True):
    """What `fivo impute` last filled with a run: the series with the most missing entries."""

    KIND: ClassVar[str] = "imputed"
    FILE: ClassVar[str] = "imputed.json"
    REMEDY: ClassVar[str] = "remove it, or run `fivo impute` again"


class LatentStates(Drawing, frozen=True):
    """The latent states that `fivo filter` or `fivo smooth` last gave of a run.

    Args:
        given: What they are given: `filtered`, the rows so far, or `smoothed`, all rows.
    """

    KIND: ClassVar[str] = "states"
    FILE: ClassVar[str] = "states.json"
    REMEDY: ClassVar[str] = "remove it, or run `fivo filter` again"

    given: Literal["filtered", "smoothed"]


class Alarms(Drawing, frozen=True):
    """What `fivo anomaly` last found with a run: the strangest series.

    Args:
        rate: The false-alarm rate.
    """

    KIND: ClassVar[str] = "alarms"
    FILE: ClassVar[str] = "anomaly.json"
    REMEDY: ClassVar[str] = "remove it, or run `fivo anomaly` again"

    rate: float


DRAWINGS: tuple[type[Drawing], ...] = (Forecasts, FilledGaps, LatentStates, Alarms)
"""What a run's page shows of tables, in this order."""
