"""Training: a configuration, a dataset and a directory in; a run out."""

from fivo.training.build import build_dataset
from fivo.training.config import TrainConfig, dataset_setting, make_config, read_config
from fivo.training.loop import train
from fivo.training.run_directory import RunDirectory
from fivo.training.step import Metrics, Trainer, TrainState

__all__ = [
    "Metrics",
    "RunDirectory",
    "TrainConfig",
    "TrainState",
    "Trainer",
    "build_dataset",
    "dataset_setting",
    "make_config",
    "read_config",
    "train",
]
