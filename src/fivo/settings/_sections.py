"""The sections of a run's settings and their kinds: every option once, with its limits, default and help."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Scheme = Literal["multinomial", "stratified", "systematic", "residual", "soft", "relaxed", "transport"]
Estimator = Literal[
    "pathwise",
    "resampling-score",
    "latent-score",
    "score",
    "mixed",
    "mixed-score",
    "doubly-reparameterized",
    "sticking-the-landing",
    "stop-gradient",
]
ControlVariate = Literal["none", "moving-average", "filters", "particles"]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]


def _count(description: str) -> Meta:
    return Meta(ge=1, le=2**31 - 1, description=description)


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """A part of a run's settings."""

    @property
    def kind(self) -> str:
        """Which of the section's kinds this is."""
        return str(self.__struct_config__.tag)


class Networks(Section, frozen=True):
    """The settings that all models made of networks share."""

    hidden: Annotated[int, _count("Units in every network, and dimension of the latent state.")] = 32
    smoothing: Annotated[bool, Meta(description="Let the proposal see future frames.")] = False


class Recurrent(Networks, frozen=True):
    """The settings that the VRNN and the SRNN share."""

    latent: Annotated[
        Literal["normal", "categorical"],
        Meta(description="The kind of latent variables; categorical ones need a score gradient."),
    ] = "normal"


class VRNN(Recurrent, frozen=True, tag="vrnn"):
    """The variational recurrent neural network."""


class SRNN(Recurrent, frozen=True, tag="srnn"):
    """The stochastic recurrent neural network."""


class DMM(Networks, frozen=True, tag="dmm"):
    """The deep Markov model."""


class LinearGaussianModel(Section, frozen=True, tag="linear-gaussian"):
    """The linear-Gaussian state-space model, trained on its exact likelihood."""

    latents: Annotated[
        int,
        Meta(
            ge=0,
            le=4096,
            description="Dimension of the latent state of a linear-gaussian model; 0 means a level for each column, a "
            "slope and three cycles.",
        ),
    ] = 0


class OwnModel(Section, frozen=True, tag="own"):
    """A model that was given to `fit` as an object, or made by a function that the user named."""

    model_name: str
    """What it is called."""
    model_digest: str = ""
    """Of its structure and first parameters."""


class Estimated(Section, frozen=True):
    """What every bound of the package has."""

    particles: Annotated[
        int, _count("Number of particles N; the ELBO instead takes N times as many sequences per step.")
    ] = 4
    gradient: Annotated[
        Estimator, Meta(description="Gradient estimator; the paper's drops the terms that come from resampling.")
    ] = "pathwise"
    baseline: Annotated[ControlVariate, Meta(description="Control variate of the score terms.")] = "none"


class ELBO(Estimated, frozen=True, tag="elbo"):
    """The evidence lower bound: one particle."""


class IWAE(Estimated, frozen=True, tag="iwae"):
    """The importance-weighted bound: N particles that are never resampled."""


class FIVO(Estimated, frozen=True, tag="fivo"):
    """The filtering variational objective."""

    resampling: Annotated[
        Scheme, Meta(description="Resampling scheme; soft, relaxed and transport are differentiable.")
    ] = "multinomial"
    ess_threshold: Annotated[
        float,
        Meta(ge=0, le=1, description="Resample when the effective sample size is at most this fraction of N."),
    ] = 0.5


class SIXO(FIVO, frozen=True, tag="sixo"):
    """FIVO with targets that look ahead, by a twist."""


class Exact(Section, frozen=True, tag="exact"):
    """The exact log-likelihood, of models that know theirs: linear-gaussian."""


class OwnBound(Section, frozen=True, tag="own"):
    """An objective that was given to `fit` as an object, or that the user named."""

    bound_name: str
    """What it is called."""
    bound_digest: str = ""
    """Of its structure and first parameters."""


class NoTwist(Section, frozen=True, tag="none"):
    """Targets that do not look ahead, or a model that brings its own twist."""


class RecurrentTwist(Section, frozen=True, tag="rnn"):
    """A network of the particle and of an LSTM over the frames to come."""

    twist_hidden: Annotated[int, _count("Units of the networks of an rnn twist.")] = 32
    twist_training: Annotated[
        Literal["bound", "dre", "td"],
        Meta(
            description="How an rnn twist is trained: by density-ratio estimation or temporal differences on simulated "
            "data, or by the bound itself, with a gradient that scores ancestors."
        ),
    ] = "dre"
    twist_learning_rate: Annotated[
        float, Meta(gt=0, le=1, description="Adam's learning rate for a twist with its own loss.")
    ] = 1e-3
    twist_repeats: Annotated[int, _count("Steps of the twist's own loss after each step of the bound.")] = 1
    twist_copies: Annotated[int, _count("Trajectories simulated per sequence of a step for the twist's own loss.")] = 4


class QuadratureTwist(Section, frozen=True, tag="quadrature"):
    """The likelihood of the next frames, integrated over the next latents of a state-space model."""

    twist_points: Annotated[int, Meta(ge=2, le=64, description="Quadrature points in each dimension.")] = 5
    twist_window: Annotated[int, Meta(ge=1, le=8, description="Frames that a quadrature twist looks ahead.")] = 1


class AuxiliaryTwist(Section, frozen=True, tag="auxiliary"):
    """The likelihood of the next frame at the prior's mean: the auxiliary particle filter."""


class ExactTwist(Section, frozen=True, tag="exact"):
    """The exact likelihood of the frames to come, of models that know it: linear-gaussian."""


class Adam(Section, frozen=True, tag="adam"):
    """Adam, or AdamW where weights decay."""

    learning_rate: Annotated[float, Meta(gt=0, le=1, description="Adam's learning rate.")] = 3e-4
    weight_decay: Annotated[
        float, Meta(ge=0, le=100, description="Weight decay, as in AdamW; helps against overfitting.")
    ] = 0.0
    schedule: Annotated[
        Literal["constant", "cosine"],
        Meta(description="The learning rate after the warm-up: constant, or a cosine decay to zero."),
    ] = "constant"
    warmup: Annotated[int, Meta(ge=0, description="Steps over which the learning rate rises linearly from zero.")] = 0
    clip: Annotated[
        float, Meta(ge=0, description="Scale gradients down to at most this norm; 0 leaves them as they are.")
    ] = 0.0


class OwnOptimizer(Section, frozen=True, tag="own"):
    """An optax transformation that was given to `fit`."""

    optimizer_name: str
    """What it is called."""
    optimizer_digest: str = ""
    """Of the structure of its state."""


class Source(Section, frozen=True, tag="source"):
    """A dataset by its name, or from a path."""

    dataset: Annotated[
        str,
        Meta(
            description="A name (see fivo data list) or a path to a pickle, .mat, .npz or a folder of MIDI files or "
            "of recordings (WAV, FLAC, NIST SPHERE)."
        ),
    ] = "bach"
    frame: Annotated[int, _count("Samples per frame, for recordings.")] = 200
    rate: Annotated[int, _count("Sample rate of the recordings, in Hz.")] = 16_000
    resample: Annotated[bool, Meta(description="Convert recordings that have another sample rate.")] = False
    split_seed: Annotated[
        Seed, Meta(description="Random seed for splitting a folder that has no sub-folders for the splits.")
    ] = 0


class Table(Section, frozen=True, tag="table"):
    """A table: CSV, Parquet, Arrow, or a folder of such files."""

    dataset: str = ""
    """The path."""
    id: Annotated[str, Meta(description="Table: the column that says which series a row belongs to.")] = ""
    time: Annotated[str, Meta(description="Table: the column of time; rows are sorted by it.")] = ""
    values: Annotated[str, Meta(description="Table: the columns to model, separated by commas; all by default.")] = ""
    inputs: Annotated[str, Meta(description="Table: columns that are known and not modelled, separated by commas.")] = (
        ""
    )
    static: Annotated[
        str, Meta(description="Table: columns that are the same in all rows of a series, separated by commas.")
    ] = ""
    kind_of: Annotated[
        str,
        Meta(description="Table: kinds of columns, as hits=count,open=binary; real, count, binary or category."),
    ] = ""
    every: Annotated[str, Meta(description="Table: put rows on a grid of time, such as 10min or 1d.")] = ""
    split: Annotated[
        str, Meta(description="Table: hold out by time, by series, or by a column that names the splits.")
    ] = ""
    fractions: Annotated[
        str, Meta(description="Table: shares of the splits, as train=0.7,valid=0.1,calibrate=0.1,test=0.1.")
    ] = ""
    window: Annotated[
        int, Meta(ge=0, description="Table: cut training series into pieces of at most this many steps; 0 does not.")
    ] = 0
    split_seed: Annotated[
        Seed, Meta(description="Random seed for splitting a folder that has no sub-folders for the splits.")
    ] = 0


class OwnData(Section, frozen=True, tag="own"):
    """A dataset that was given to `fit` as an object; the run has its fingerprint."""

    dataset: str
    """What it is called."""


class Training(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How long and how a run trains."""

    batch_size: Annotated[int, _count("Sequences per step.")] = 4
    steps: Annotated[int, _count("Optimizer steps in total.")] = 20_000
    seed: Annotated[Seed, Meta(description="Random seed.")] = 0
    average: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="Validate and keep a moving average of the parameters with this decay, say 0.999; 0 keeps the "
            "parameters themselves.",
        ),
    ] = 0.0
    validate_every: Annotated[int, _count("Steps between validations.")] = 1_000
    validation_particles: Annotated[
        int,
        Meta(ge=0, description="Number of particles of the validation bound; 0 means as many as in training."),
    ] = 0
    patience: Annotated[
        int, Meta(ge=0, description="Stop after this many validations without improvement; 0 never stops early.")
    ] = 20
    log_every: Annotated[int, _count("Steps between lines in metrics.jsonl.")] = 100
    tensorboard: Annotated[bool, Meta(description="Also write TensorBoard events.")] = False
    init_from: Annotated[
        str, Meta(description="Start with the best parameters of this run instead of random ones.")
    ] = ""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that makes a run what it is; the defaults are the paper's where it has them.

    Args:
        model: What is trained.
        bound: The objective.
        twist: How the bound sixo looks ahead.
        optimizer: How parameters follow the gradient.
        data: Where sequences come from.
        training: How long, in what batches, and how it is validated.
        updates: Digests of further updates, by their names.
        validation: The name and the digest of an objective that was given to choose the best step.
        own: What the user says of objects that a run cannot look into: the `config` given to `fit`.
    """

    model: VRNN | SRNN | DMM | LinearGaussianModel | OwnModel = VRNN()
    bound: ELBO | IWAE | FIVO | SIXO | Exact | OwnBound = FIVO()
    twist: NoTwist | RecurrentTwist | QuadratureTwist | AuxiliaryTwist | ExactTwist = NoTwist()
    optimizer: Adam | OwnOptimizer = Adam()
    data: Source | Table | OwnData = Source()
    training: Training = Training()
    updates: dict[str, str] = {}
    validation: dict[str, str] = {}
    own: dict[str, Any] = {}

    @property
    def sequences_per_step(self) -> int:
        """The ELBO has one sample per sequence and N times the sequences: the paper's equal budget."""
        many = self.bound.particles if isinstance(self.bound, ELBO) else 1
        return self.training.batch_size * many

    @property
    def particles(self) -> int | None:
        """N, where the bound is one of ours."""
        return None if isinstance(self.bound, OwnBound | Exact) else self.bound.particles
