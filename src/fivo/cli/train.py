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
        "mixed",
        "mixed-score",
        "doubly-reparameterized",
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
    """Train a model; run the same command again to resume an interrupted run, to the bit.

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
        The kind of latent variables; categorical ones need a score gradient. [normal]
    smoothing
        Let the proposal see future frames.
    bound
        The training objective. [fivo]
    particles
        Number of particles N; the ELBO instead takes N times as many sequences per step. [4]
    hidden
        Units in every network, and dimension of the latent state. [32]
    learning_rate
        Adam's learning rate. [3e-4]
    weight_decay
        Weight decay, as in AdamW; helps against overfitting. [0]
    batch_size
        Sequences per step. [4]
    steps
        Optimizer steps in total. [20000]
    seed
        Random seed. [0]
    resampling
        Resampling scheme; soft, relaxed and transport are differentiable. [multinomial]
    ess_threshold
        Resample when the effective sample size is at most this fraction of N. [0.5]
    gradient
        Gradient estimator; the paper's drops the terms that come from resampling. [pathwise]
    baseline
        Control variate of the score terms. [none]
    validate_every
        Steps between validations. [1000]
    validation_particles
        Number of particles of the validation bound; 0 means as many as in training. [0]
    patience
        Stop after this many validations without improvement; 0 never stops early. [20]
    log_every
        Steps between lines in metrics.jsonl. [100]
    tensorboard
        Also write TensorBoard events.
    frame
        Samples per frame, for recordings. [200]
    rate
        Sample rate of the recordings, in Hz. [16000]
    resample
        Convert recordings that have another sample rate.
    split_seed
        Random seed for splitting a folder that has no sub-folders for the splits. [0]
    config
        A TOML file with any of these settings; options on the command line take precedence.
    data_dir
        Where to look for datasets first.
    override
        Resume a run with changed settings, for example after its loss became NaN.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    for name in ("out", "config", "data_dir", "override"):
        given.pop(name, None)

    import msgspec

    from fivo.caching import compilation_cache
    from fivo.cli.progress import summary
    from fivo.cli.training import train_with_progress
    from fivo.training import build_dataset, dataset_setting, make_config, read_config

    settings = make_config({**(read_config(config) if config else {}), **given})
    data = build_dataset(settings, data_dir)
    settings = msgspec.structs.replace(settings, dataset=dataset_setting(settings.dataset))
    compilation_cache()
    summary(out, train_with_progress(settings, out, data, override=override))
