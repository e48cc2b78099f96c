"""`fivo train`."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def train(
    *,
    out: Path,
    dataset: str | None = None,
    model: Literal["vrnn", "srnn"] | None = None,
    latent: Literal["normal", "categorical"] | None = None,
    smoothing: bool | None = None,
    bound: Literal["elbo", "iwae", "fivo"] | None = None,
    particles: int | None = None,
    hidden: int | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    batch_size: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
    resampling: Literal["multinomial", "stratified", "systematic", "residual", "soft", "relaxed", "transport"]
    | None = None,
    ess_threshold: float | None = None,
    gradient: Literal[
        "pathwise",
        "resampling-score",
        "latent-score",
        "score",
        "doubly-reparameterised",
        "sticking-the-landing",
        "stop-gradient",
    ]
    | None = None,
    baseline: Literal["none", "moving-average", "filters", "particles"] | None = None,
    validate_every: int | None = None,
    validation_particles: int | None = None,
    patience: int | None = None,
    log_every: int | None = None,
    tensorboard: bool | None = None,
    frame: int | None = None,
    rate: int | None = None,
    resample: bool | None = None,
    split_seed: int | None = None,
    config: Path | None = None,
    data_dir: Path | None = None,
    override: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Train a model; the same command continues an interrupted run, to the bit.

    Parameters
    ----------
    out
        The run's directory.
    dataset
        A name (see `fivo data list`) or a path to a pickle, .mat, .npz or a folder of MIDI files or of
        recordings (WAV, FLAC, NIST SPHERE). [bach]
    model
        The model. [vrnn]
    latent
        Kind of latent variables; categorical ones need a score gradient. [normal]
    smoothing
        Let the proposal read future frames.
    bound
        The objective. [fivo]
    particles
        N; the ELBO takes N times the sequences per step instead. [4]
    hidden
        Units of every network and of the latent state. [32]
    learning_rate
        Adam's learning rate. [3e-4]
    weight_decay
        Shrink every parameter by this times the learning rate in each step, against overfitting. [0]
    batch_size
        Sequences per step. [4]
    steps
        Optimiser steps in all. [20000]
    seed
        Of everything random. [0]
    resampling
        How ancestors are drawn; soft, relaxed and transport carry gradients. [multinomial]
    ess_threshold
        Resample when ESS <= this fraction of N. [0.5]
    gradient
        Which terms of the bound's gradient are followed; the paper drops those of resampling. [pathwise]
    baseline
        What is subtracted from the learning signals of score terms. [none]
    validate_every
        Steps between validations. [1000]
    validation_particles
        N of the validation bound; 0 is the training's. [0]
    patience
        Validations without improvement before stopping; 0 never stops. [20]
    log_every
        Steps between lines of metrics.jsonl. [100]
    tensorboard
        Also write TensorBoard events.
    frame
        Samples of a frame, for recordings. [200]
    rate
        Samples a second of the recordings. [16000]
    resample
        Convert recordings of other rates.
    split_seed
        Draws the splits of a folder that has no sub-folders for them. [0]
    config
        A TOML file with any of these settings; options given here win.
    data_dir
        Where datasets are looked up first.
    override
        Continue a run with changed settings, say after its loss became NaN.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    for name in ("out", "config", "data_dir", "override"):
        given.pop(name, None)

    import msgspec

    from fivo.caching import compilation_cache
    from fivo.cli.progress import TrainingProgress
    from fivo.training import build_dataset, dataset_setting, make_config, read_config
    from fivo.training import train as run_training

    settings = make_config({**(read_config(config) if config else {}), **given})
    data = build_dataset(settings, data_dir)
    settings = msgspec.structs.replace(settings, dataset=dataset_setting(settings.dataset))
    compilation_cache()
    with TrainingProgress(settings.steps) as progress:
        result = run_training(settings, out, data, override=override, report=progress)
    progress.summary(out, result)
