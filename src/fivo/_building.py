"""Settings made into objects: datasets, models and bounds by their names."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Key

from fivo import settings as kinds
from fivo.bounds import ELBO, FIVO, IWAE, SIXO, Bound, Exact
from fivo.data import Dataset, TableFacts, load
from fivo.errors import InputError
from fivo.gradients import Gradient, Pathwise
from fivo.models import (
    DMM,
    SRNN,
    VRNN,
    AuxiliaryTwist,
    BernoulliEmission,
    CategoricalEmission,
    CategoricalLatent,
    Emission,
    ExactTwist,
    MixedEmission,
    NegativeBinomialEmission,
    NormalEmission,
    NormalLatent,
    QuadratureTwist,
    RecurrentTwist,
    SequenceModel,
    Twisted,
    has_twist,
    num_structural_latents,
    structural_start,
)
from fivo.resampling import ESSBelow, bound_lost, get_scheme
from fivo.settings import Settings

MODELS = {"vrnn": VRNN, "srnn": SRNN, "dmm": DMM}
LATENTS = {"normal": NormalLatent, "categorical": CategoricalLatent}
BOUNDS = ("elbo", "iwae", "fivo")


def build_dataset(settings: Settings, data_dir: str | Path | None = None) -> Dataset:
    """The data that the settings name."""
    source = settings.data
    if isinstance(source, kinds.Table):
        return _read_table(source)
    if isinstance(source, kinds.OwnData):
        raise InputError(
            f"the run was trained on {source.dataset!r}, a dataset that was given as an object; give it again as "
            "`dataset`."
        )
    return load(
        source.dataset,
        data_dir=data_dir,
        split_seed=source.split_seed,
        frame=source.frame,
        rate=source.rate,
        resample=source.resample,
    )


def build_model(settings: Settings, dataset: Dataset | TableFacts, *, key: Key[Array, ""]) -> SequenceModel:
    """The untrained model of the settings."""
    if isinstance(settings.model, kinds.LinearGaussianModel):
        model = _linear_gaussian(settings.model.latents, dataset)
    else:
        model = model_with(build_emission(dataset), settings, num_inputs=len(dataset.input_columns), key=key)
    return with_twist(model, settings, dataset, key=key)


def with_twist(
    model: SequenceModel, settings: Settings, dataset: Dataset | TableFacts, *, key: Key[Array, ""]
) -> SequenceModel:
    """The model with the twist of the settings, if they have one; a model that brings its own keeps it."""
    chosen = settings.twist
    twisted = isinstance(settings.bound, kinds.SIXO)
    if isinstance(chosen, kinds.NoTwist):
        if twisted and not has_twist(model):
            raise InputError(
                f"the bound sixo must be given a model with a twist, got a {type(model).__name__}; say --twist rnn."
            )
        return model
    if not twisted:
        raise InputError(
            f"the twist {chosen.kind} must go with the bound sixo, got {settings.bound.kind}; say --bound sixo, or "
            "leave it out."
        )
    if has_twist(model):
        return model
    if isinstance(chosen, kinds.RecurrentTwist):
        frames = None if hasattr(model, "output") else build_emission(dataset)
        twist = RecurrentTwist(model, chosen.twist_hidden, frames=frames, key=jax.random.fold_in(key, 1))
    elif isinstance(chosen, kinds.QuadratureTwist):
        twist = QuadratureTwist(chosen.twist_points, chosen.twist_window)
    else:
        twist = ExactTwist() if isinstance(chosen, kinds.ExactTwist) else AuxiliaryTwist()
    return Twisted(model, twist)


def model_with(emission: Emission, settings: Settings, *, num_inputs: int = 0, key: Key[Array, ""]) -> SequenceModel:
    """The untrained model of the settings with an emission that was built before."""
    chosen = settings.model
    if isinstance(chosen, kinds.LinearGaussianModel):
        raise InputError("a linear-gaussian model has no networks, and so no emission of its own.")
    if isinstance(chosen, kinds.OwnModel):
        raise InputError(
            f"the run's model is {chosen.model_name}, which a run directory does not hold; give it again: "
            "`open_run(path, model=...)` in Python, `--model package.module:function` on the command line."
        )
    of_latents = {"latent": LATENTS[chosen.latent](chosen.hidden)} if isinstance(chosen, kinds.Recurrent) else {}
    return MODELS[chosen.kind](
        emission,
        chosen.hidden,
        **of_latents,
        smoothing=chosen.smoothing,
        num_inputs=num_inputs,
        key=key,
    )


def _linear_gaussian(latents: int, dataset: Dataset | TableFacts) -> SequenceModel:
    """A model that starts as the training data suggests; without the data, one of the same shapes."""
    others = [column.name for column in dataset.columns if column.kind != "real"]
    if others:
        raise InputError(
            f"a linear-gaussian model needs columns of real numbers, but {others[0]!r:.60} is no such; use another "
            f"model, leave it out, or say --kind-of {others[0]:.60}=real."
        )
    width, latents = len(dataset.input_columns), latents or num_structural_latents(dataset.dimension)
    if isinstance(dataset, TableFacts):
        inputs = [np.zeros((2, width))] if width else None
        return structural_start([np.zeros((2, dataset.dimension))], None, inputs, latents)
    train = dataset.splits["train"]
    return structural_start(train.sequences, train.masks, train.inputs, latents)


def _read_table(source: kinds.Table) -> Dataset:
    return Dataset.from_table(
        source.dataset,
        id=source.id or None,
        time=source.time or None,
        values=_listed(source.values) or None,
        inputs=_listed(source.inputs),
        static=_listed(source.static),
        kinds=_pairs(source.kind_of, "kind_of"),
        every=source.every or None,
        split=source.split or None,
        fractions={name: _share(text) for name, text in _pairs(source.fractions, "fractions").items()} or None,
        seed=source.split_seed,
        window=source.window or None,
    )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pairs(text: str, setting: str) -> dict[str, str]:
    pairs = [part.rpartition("=") for part in _listed(text)]
    if not all(name and value for name, _, value in pairs):
        raise InputError(f"{setting} must be pairs such as name=value, separated by commas, got {text!r:.60}.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"fractions must be numbers such as train=0.8, got {text!r:.60}.") from None


def build_emission(dataset: Dataset | TableFacts) -> Emission:
    """What a dataset's frames are emitted by, from the kinds of its columns and their statistics in train."""
    groups: dict[tuple[str, int], list[int]] = {}
    for index, column in enumerate(dataset.columns):
        groups.setdefault((column.kind, len(column.categories)), []).append(index)
    parts = [(_emission(dataset, kind, places), places) for (kind, _), places in groups.items()]
    return parts[0][0] if len(parts) == 1 else MixedEmission(*parts)


def _emission(dataset: Dataset | TableFacts, kind: str, places: list[int]) -> Emission:
    """Of the columns of one kind; category columns that come together have equally many categories."""
    if kind == "category":
        return CategoricalEmission(np.stack([dataset.train_rates(place) for place in places]))
    mean = np.asarray(dataset.train_mean, np.float32)[places]
    if kind == "binary":
        return BernoulliEmission(mean)
    if kind == "count":
        return NegativeBinomialEmission(mean)
    # What is not standardised is read and emitted in units of its spread, but for waveforms: theirs is the paper's way.
    if dataset.sound is not None or all(dataset.columns[place].is_scaled for place in places):
        return NormalEmission(mean)
    return NormalEmission(mean, np.asarray(dataset.train_deviation, np.float32)[places])


def build_bound(
    name: str, num_particles: int, chosen: Any, *, gradient: Gradient | None = None, resampling: str | None = None
) -> Bound:
    """A bound by its name; FIVO resamples as the section `chosen` says, or by default if it is not for FIVO."""
    if name == "exact":
        return Exact()
    gradient = Pathwise() if gradient is None else gradient
    if name == "elbo":
        return ELBO(num_particles, gradient=gradient)
    if name == "iwae":
        return IWAE(num_particles, gradient=gradient)
    fivo = chosen if isinstance(chosen, kinds.FIVO) else kinds.FIVO()
    return (SIXO if name == "sixo" else FIVO)(
        num_particles,
        resampling=resampling or fivo.resampling,
        criterion=ESSBelow(fivo.ess_threshold),
        gradient=gradient,
    )


def bounding_resampling(settings: Settings) -> str:
    """The run's resampling, or multinomial if FIVO is not a lower bound with it."""
    scheme = settings.bound.resampling if isinstance(settings.bound, kinds.FIVO) else kinds.FIVO().resampling
    return "multinomial" if bound_lost(get_scheme(scheme)) else scheme
