"""A run's directory as training sees it: its settings are a `TrainConfig`, which may change only where that is safe."""

import platform
from importlib.metadata import version

import msgspec

from fivo import __version__, runs
from fivo.errors import InputError
from fivo.runs import Provenance, Result
from fivo.training.commit import code_commit
from fivo.training.config import TrainConfig, make_config

EXTENDABLE = {"steps", "patience", "log_every", "tensorboard"}
"""Settings that a run may be continued with changed: they leave what was already computed as it is."""


class RunDirectory(runs.RunDirectory):
    """The files of a training run; hold it as a context manager to write."""

    def config(self) -> TrainConfig:
        """The settings of the run."""
        return make_config(self.settings())

    def fingerprint(self) -> str:
        """Of the data that the run was trained on."""
        return self.provenance().dataset_fingerprint

    def check(self, config: TrainConfig, fingerprint: str, *, override: bool) -> bool:
        """Refuse to continue a run on other data or, unless overridden, with other settings; whether they change."""
        if not self.exists():
            self._check_nothing_is_left()
            return False
        changed = self._changes(config)
        if changed and not override:
            name = changed[0]
            was, now = getattr(self.config(), name), getattr(config, name)
            raise InputError(
                f"{str(self.path)!r} holds a run with {name}={was!r} where {now!r} was asked for; choose another "
                "--out, or pass --override to continue it with the new setting."
            )
        if self.fingerprint() != fingerprint:
            raise InputError(
                f"{str(self.path)!r} was trained on other data than {config.dataset!r} now is; choose another --out."
            )
        return bool(changed)

    def record_provenance(self, fingerprint: str) -> None:
        """Write down what is about to train the run; before its first settings, which make this a run."""
        names = ("jax", "jaxlib", "equinox", "numpyro", "optax")
        versions = {"fivo": __version__} | {name: version(name) for name in names}
        self.write(Provenance(fingerprint, code_commit(), platform.python_version(), versions))

    def record(self, config: TrainConfig, step: int) -> None:
        """Write down the settings that the run is continued with from a step on."""
        changed_at = list(self.identity().changed_at) if self.exists() else []
        if step and self.exists() and self._changes(config):
            changed_at.append(step)
        self.write_settings(msgspec.to_builtins(config), changed_at)

    def _changes(self, config: TrainConfig) -> list[str]:
        """The settings that would make another run of this one."""
        old = self.config()
        names = [name for name in TrainConfig.__struct_fields__ if name not in EXTENDABLE]
        return [name for name in names if getattr(old, name) != getattr(config, name)]

    def _check_nothing_is_left(self) -> None:
        """Refuse to start where another run has lost its settings; its provenance is written before them."""
        others = self.checkpoints.exist() or self.metrics_path.exists() or (self.path / Result.FILE).exists()
        if others:
            raise InputError(
                f"{str(self.path)!r} holds a run that has lost its settings ({self.config_path.name}); restore the "
                "file from a copy, or choose another --out."
            )
