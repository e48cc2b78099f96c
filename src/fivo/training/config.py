"""What a training run is, as data: every command-line option of `fivo train` is a field here."""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fivo.data.registry import KNOWN
from fivo.data.speech.timit import NAME as TIMIT
from fivo.errors import InputError
from fivo.runs import RECORD

Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class TrainConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=False):
    """Settings of one run; the defaults are the paper's where it has them."""

    dataset: str = "bach"
    model: Literal["vrnn", "srnn"] = "vrnn"
    smoothing: bool = False
    latent: Literal["normal", "categorical"] = "normal"
    hidden: Positive = 32
    bound: Literal["elbo", "iwae", "fivo"] = "fivo"
    particles: Positive = 4
    resampling: Literal["multinomial", "stratified", "systematic", "residual", "soft", "relaxed", "transport"] = (
        "multinomial"
    )
    ess_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    gradient: Literal[
        "pathwise",
        "resampling-score",
        "latent-score",
        "score",
        "mixed",
        "mixed-score",
        "doubly-reparameterized",
        "sticking-the-landing",
        "stop-gradient",
    ] = "pathwise"
    baseline: Literal["none", "moving-average", "filters", "particles"] = "none"
    learning_rate: Annotated[float, Meta(gt=0, le=1)] = 3e-4
    weight_decay: Annotated[float, Meta(ge=0, le=100)] = 0.0
    """Decoupled from the gradient, in units of the learning rate; the paper has none."""
    batch_size: Positive = 4
    steps: Positive = 20_000
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    validate_every: Positive = 1_000
    validation_particles: Annotated[int, Meta(ge=0)] = 0
    """Particles of the validation bound; 0 means as many as in training."""
    patience: Annotated[int, Meta(ge=0)] = 20
    """Validations without improvement before training stops; 0 never stops early."""
    log_every: Positive = 100
    tensorboard: bool = False
    frame: Positive = 200
    """Samples of a frame, for recordings."""
    rate: Positive = 16_000
    """Samples a second of the recordings."""
    resample: bool = False
    """Convert recordings of other rates."""
    split_seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    """Draws the splits of a folder that has no sub-folders for them."""

    @property
    def sequences_per_step(self) -> int:
        """The ELBO has one sample per sequence and N times the sequences: the paper's equal budget."""
        return self.batch_size * (self.particles if self.bound == "elbo" else 1)


def make_config(settings: dict[str, Any]) -> TrainConfig:
    """A configuration from plain values; unknown names and values out of range are one sentence."""
    known = TrainConfig.__struct_fields__
    for name in settings:
        if name not in known:
            raise InputError(f"got the unknown setting {name!r} where one of {', '.join(known)} was expected.")
    try:
        return msgspec.convert(settings, TrainConfig)
    except msgspec.ValidationError as error:
        problem, _, name = str(error).removesuffix("`").partition(" - at `$.")
        raise InputError(
            f"the setting {name} is {settings.get(name)!r:.60}: {problem[0].lower()}{problem[1:].replace('`', '')}."
        ) from None


def dataset_setting(dataset: str) -> str:
    """A known name as it is, a path made absolute: a run finds its data again from anywhere."""
    path = os.path.expanduser(dataset)
    return dataset if dataset in (*KNOWN, TIMIT) or not os.path.exists(path) else os.path.abspath(path)


def read_config(path: str | Path) -> dict[str, Any]:
    """The settings of a TOML file; a run's own config.toml has a table with its identity, which is left out."""
    try:
        content = tomllib.loads(Path(path).read_text())
    except FileNotFoundError:
        raise InputError(f"the configuration {str(path)!r} does not exist; check the path.") from None
    except (ValueError, RecursionError, OSError) as error:
        raise InputError(f"the configuration {str(path)!r} is not readable TOML ({error}); mend it.") from None
    return {name: value for name, value in content.items() if name != RECORD}
