"""What a training run is, as data: one place per option for Python, TOML and the command line.

A run's settings have five sections. `model`, `bound`, `optimizer` and `data` are tagged unions: their `kind` says which
fields they have. Users write them flat, as `particles=8` or `--particles 8`; a section's kind goes by the section's own
name, as in `bound="fivo"`.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import NODEFAULT, Meta

from fivo.errors import InputError

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


class Recurrent(Section, frozen=True):
    """The settings that the VRNN and the SRNN share."""

    hidden: Annotated[int, _count("Units in every network, and dimension of the latent state.")] = 32
    latent: Annotated[
        Literal["normal", "categorical"],
        Meta(description="The kind of latent variables; categorical ones need a score gradient."),
    ] = "normal"
    smoothing: Annotated[bool, Meta(description="Let the proposal see future frames.")] = False


class VRNN(Recurrent, frozen=True, tag="vrnn"):
    """The variational recurrent neural network."""


class SRNN(Recurrent, frozen=True, tag="srnn"):
    """The stochastic recurrent neural network."""


class LinearGaussianModel(Section, frozen=True, tag="linear-gaussian"):
    """The linear-Gaussian state-space model, trained on its exact likelihood."""

    latents: Annotated[int, _count("Dimension of the latent state of a linear-gaussian model.")] = 4


class OwnModel(Section, frozen=True, tag="own"):
    """A model that was given to `fit` as an object, or made by a function that the user named."""

    model_name: str
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


class Exact(Section, frozen=True, tag="exact"):
    """The exact log-likelihood, of models that know theirs: linear-gaussian."""


class OwnBound(Section, frozen=True, tag="own"):
    """An objective that was given to `fit` as an object, or that the user named."""

    bound_name: str
    bound_digest: str = ""


class Adam(Section, frozen=True, tag="adam"):
    """Adam, or AdamW where weights decay."""

    learning_rate: Annotated[float, Meta(gt=0, le=1, description="Adam's learning rate.")] = 3e-4
    weight_decay: Annotated[
        float, Meta(ge=0, le=100, description="Weight decay, as in AdamW; helps against overfitting.")
    ] = 0.0
    schedule: Annotated[
        Literal["constant", "cosine"],
        Meta(description="How the learning rate goes on after the warm-up: constant, or along a cosine to zero."),
    ] = "constant"
    warmup: Annotated[int, Meta(ge=0, description="Steps over which the learning rate rises linearly from zero.")] = 0
    clip: Annotated[
        float, Meta(ge=0, description="Scale gradients down to at most this norm; 0 leaves them as they are.")
    ] = 0.0


class OwnOptimizer(Section, frozen=True, tag="own"):
    """An optax transformation that was given to `fit`."""

    optimizer_name: str
    optimizer_digest: str = ""
    """Of the structure of its state."""


class Source(Section, frozen=True, tag="source"):
    """A dataset by its name, or from a path."""

    dataset: Annotated[
        str,
        Meta(
            description="A name (see `fivo data list`) or a path to a pickle, .mat, .npz or a folder of MIDI files or "
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
    """Everything that makes a run what it is; the defaults are the paper's where it has them."""

    model: VRNN | SRNN | LinearGaussianModel | OwnModel = VRNN()
    bound: ELBO | IWAE | FIVO | Exact | OwnBound = FIVO()
    optimizer: Adam | OwnOptimizer = Adam()
    data: Source | Table | OwnData = Source()
    training: Training = Training()
    updates: dict[str, str] = {}
    """Digests of further updates, by their names."""
    own: dict[str, Any] = {}
    """What the user says of objects that a run cannot look into: the `config` given to `fit`."""

    @property
    def sequences_per_step(self) -> int:
        """The ELBO has one sample per sequence and N times the sequences: the paper's equal budget."""
        many = self.bound.particles if isinstance(self.bound, ELBO) else 1
        return self.training.batch_size * many

    @property
    def particles(self) -> int | None:
        """N, where the bound is one of ours."""
        return None if isinstance(self.bound, OwnBound | Exact) else self.bound.particles


EXTENDABLE = {"steps", "patience", "log_every", "tensorboard"}
"""Settings that a run may be continued with changed: they leave what was already computed as it is."""
OWN = "own"
SECTIONS: dict[str, tuple[type, ...]] = {
    field.name: get_args(field.type) or (field.type,)
    for field in msgspec.structs.fields(Settings)
    if field.name not in ("updates", OWN)
}
"""The kinds of every section; `training` has one."""
KINDS: dict[str, dict[str, type]] = {
    name: {str(kind.__struct_config__.tag): kind for kind in kinds}
    for name, kinds in SECTIONS.items()
    if len(kinds) > 1
}
DEFAULTS = Settings()


class Option(msgspec.Struct, frozen=True):
    """One setting as users write it."""

    name: str
    section: str
    type: Any
    default: Any
    help: str


def options() -> dict[str, Option]:
    """Every setting by its flat name; the kinds of a section go by the section's name."""
    found: dict[str, Option] = {}
    for section, kinds in SECTIONS.items():
        default = getattr(DEFAULTS, section)
        if section in ("model", "bound"):
            names = tuple(kind for kind in KINDS[section] if kind != OWN)
            found[section] = Option(section, section, Literal[names], default.kind, _KIND_HELP[section])
        for kind in kinds:
            for field in msgspec.structs.fields(kind):
                if field.name not in found and kind.__struct_config__.tag != OWN and field.default is not NODEFAULT:
                    description = _description(field.type)
                    found[field.name] = Option(field.name, section, field.type, field.default, description)
    return found


_KIND_HELP = {"model": "The model.", "bound": "The training objective."}


def _description(annotation: Any) -> str:
    return next((meta.description for meta in _metas(annotation) if meta.description), "")


def _metas(annotation: Any) -> Iterator[Meta]:
    yield from (meta for meta in getattr(annotation, "__metadata__", ()) if isinstance(meta, Meta))


OPTIONS = options()
ONLY_TABLES = frozenset(Table.__struct_fields__) - frozenset(Source.__struct_fields__)
"""Settings that say that data is a table."""
_DEFAULTS_OF: dict[Any, dict[str, Any]] = {"linear-gaussian": {"bound": "exact", "learning_rate": 0.02}}
"""Defaults of other sections that come with a model."""


def make_settings(flat: Mapping[str, Any], base: Settings = DEFAULTS) -> Settings:
    """Settings from plain values by their flat names.

    Args:
        flat: What differs from `base`; unknown names, values out of range, and settings that the chosen kind of a
            section does not have are refused in one sentence.
        base: Where everything else comes from. A section whose kind changes starts from that kind's defaults.
    """
    given: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    flat = {**_DEFAULTS_OF.get(flat.get("model", ""), {}), **flat}
    kinds = {section: getattr(base, section).kind for section in KINDS}
    if kinds["data"] == "source" and any(name in flat for name in ONLY_TABLES):
        kinds["data"] = "table"
    for name, value in flat.items():
        if name in KINDS and name in OPTIONS:
            kinds[name] = _known_kind(name, value)
    for name, value in flat.items():
        if name in KINDS and name in OPTIONS:
            continue
        if name not in OPTIONS:
            raise InputError(f"got the unknown setting {name!r} where one of {', '.join(OPTIONS)} was expected.")
        section = OPTIONS[name].section
        if section in KINDS and name not in KINDS[section][kinds[section]].__struct_fields__:
            raise InputError(f"{name} is no setting of the {section} {kinds[section]!r}; leave it out.")
        given[section][name] = value
    built = {section: _section(section, kinds.get(section), given[section], base) for section in SECTIONS}
    return Settings(**built, updates=base.updates, own=base.own)


def _known_kind(section: str, value: Any) -> str:
    known = [kind for kind in KINDS[section] if kind != OWN]
    if value not in known:
        raise InputError(f"the setting {section} must be one of {', '.join(known)}, got {value!r:.60}.")
    return value


def _section(section: str, kind: str | None, given: dict[str, Any], base: Settings) -> Any:
    old = getattr(base, section)
    wanted = SECTIONS[section][0] if kind is None else KINDS[section][kind]
    kept = msgspec.structs.asdict(old) if type(old) is wanted else {}
    try:
        return msgspec.convert({**kept, **given, **({} if kind is None else {"kind": kind})}, wanted)
    except msgspec.ValidationError as error:
        problem, _, name = str(error).removesuffix("`").partition(" - at `$.")
        raise InputError(
            f"the setting {name} is {given.get(name)!r:.60}: {problem[0].lower()}{problem[1:].replace('`', '')}."
        ) from None


def flattened(settings: Settings) -> dict[str, Any]:
    """All settings by their flat names, as plain values; own objects are represented by their names."""
    flat: dict[str, Any] = {}
    for section in SECTIONS:
        part = getattr(settings, section)
        values = msgspec.to_builtins(part)
        kind = values.pop("kind", None)
        if section in ("model", "bound"):
            flat[section] = values.get(f"{section}_name", kind)
        flat |= {name: value for name, value in values.items() if not name.endswith(("_name", "_digest"))}
    return flat | dict(settings.own)


def changed(settings: Settings) -> dict[str, Any]:
    """The flat settings that are not at their defaults."""
    return {
        name: value
        for name, value in flattened(settings).items()
        if name not in OPTIONS or value != OPTIONS[name].default
    }


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text())
    except FileNotFoundError:
        raise InputError(f"the configuration {str(path)!r} does not exist; check the path.") from None
    except (ValueError, RecursionError, OSError) as error:
        raise InputError(f"the configuration {str(path)!r} is not readable TOML ({error}); mend it.") from None


OF_RUNS = ("updates", OWN, "record")
"""What a run's config.toml has beside settings: digests, the user's own values, and the run's identity."""


def read_settings(path: str | Path) -> dict[str, Any]:
    """The settings of a TOML file by their flat names, written flat, in sections, or as a run's own config.toml."""
    flat: dict[str, Any] = {}
    for name, value in read_toml(path).items():
        if name in OF_RUNS and isinstance(value, dict):
            continue
        if name not in SECTIONS or not isinstance(value, dict):
            flat[name] = value
            continue
        content = dict(value)
        kind = content.pop("kind", None) if name in KINDS else None
        if kind is not None and name in OPTIONS:
            flat[name] = kind
        elif kind is not None and (name, kind) != ("data", OWN):
            _known_kind(name, kind)
        flat |= content
    return flat


def from_record(content: Mapping[str, Any], where: str) -> Settings:
    """The settings that a run's own config.toml holds."""
    try:
        return msgspec.convert(dict(content), Settings)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{where} has settings that this version of fivo does not know ({str(error).replace('`', '')}); read it "
            "with the version that wrote it (named in run.json)."
        ) from None
