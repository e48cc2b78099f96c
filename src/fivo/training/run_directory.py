"""A run's directory: configuration, provenance, metrics, checkpoints and results, owned by one process at a time.

config.toml     the settings                     checkpoints/latest.safetensors   to continue from, to the bit
run.json        versions, dataset, host-free     checkpoints/best.safetensors     best on validation
metrics.jsonl   one object per logged step       result.json                      written when training ends
"""

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fivo import __version__
from fivo.errors import InputError
from fivo.files import lock, remove_parts, write_atomically
from fivo.training.commit import code_commit
from fivo.training.config import TrainConfig, config_bytes, make_config, read_config

EXTENDABLE = {"steps", "patience", "log_every", "tensorboard"}
"""Settings that a run may be continued with changed: they leave what was already computed as it is."""


class RunDirectory:
    """The files of a run; hold it as a context manager to write."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self._lock: Any = None

    @property
    def latest(self) -> Path:
        return self.path / "checkpoints" / "latest.safetensors"

    @property
    def best(self) -> Path:
        return self.path / "checkpoints" / "best.safetensors"

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    def exists(self) -> bool:
        """Whether a run was ever started here."""
        return (self.path / "config.toml").exists()

    def config(self) -> TrainConfig:
        """The settings of the run."""
        if not self.exists():
            raise InputError(
                f"{str(self.path)!r} is not a run directory (it has no config.toml); train one with `fivo train`."
            )
        return make_config(read_config(self.path / "config.toml"))

    def provenance(self) -> dict[str, Any]:
        """Versions and the dataset's fingerprint."""
        return self._read_json("run.json", "restore it from a copy, or train in another directory")

    def fingerprint(self) -> str | None:
        """Of the data that the run was trained on."""
        return self.provenance().get("dataset_fingerprint")

    def result(self) -> dict[str, Any]:
        """What training ended with."""
        return self._read_json("result.json", "run `fivo train` with the run's settings to its end")

    def metrics(self) -> list[dict[str, Any]]:
        """All whole lines of the metrics, a torn last one left out."""
        if not self.metrics_path.exists():
            return []
        rows = []
        for line in self.metrics_path.read_text().splitlines():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return rows

    def check(self, config: TrainConfig, fingerprint: str, *, override: bool) -> None:
        """Refuse to continue a run on other data or, unless overridden, with other settings."""
        if not self.exists():
            return
        old = self.config()
        for name in TrainConfig.__struct_fields__:
            was, now = getattr(old, name), getattr(config, name)
            if was != now and name not in EXTENDABLE and not override:
                raise InputError(
                    f"{str(self.path)!r} holds a run with {name}={was!r} where {now!r} was asked for; choose another "
                    "--out, or pass --override to continue it with the new setting."
                )
        if self.fingerprint() != fingerprint:
            raise InputError(
                f"{str(self.path)!r} was trained on other data than {config.dataset!r} now is; choose another --out."
            )

    def record_provenance(self, fingerprint: str) -> None:
        """Write down what is about to train the run; before its first settings, which make this a run."""
        provenance = {
            "dataset_fingerprint": fingerprint,
            "commit": code_commit(),
            "python": platform.python_version(),
            "versions": {"fivo": __version__}
            | {name: version(name) for name in ("jax", "jaxlib", "equinox", "numpyro", "optax")},
        }
        self.write_json("run.json", provenance)

    def record(self, config: TrainConfig) -> None:
        """Write down the settings that the run is continued with."""
        write_atomically(self.path / "config.toml", config_bytes(config))

    def append_metrics(self, row: dict[str, Any]) -> None:
        """Add one line, on disk before this returns."""
        try:
            with open(self.metrics_path, "ab") as file:
                file.write((json.dumps(row) + "\n").encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(
                f"{str(self.metrics_path)!r} cannot be written ({error.strerror}); free some space and run the same "
                "command again."
            ) from error

    def forget_after(self, step: int) -> None:
        """Drop metrics of steps that a restored checkpoint has not seen."""
        kept = [row for row in self.metrics() if row["step"] <= step]
        write_atomically(self.metrics_path, "".join(json.dumps(row) + "\n" for row in kept).encode())

    def forget_result(self) -> None:
        """A run that goes on has no result yet."""
        (self.path / "result.json").unlink(missing_ok=True)

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        """Write an object that a program reads."""
        write_atomically(self.path / name, (json.dumps(value, indent=2) + "\n").encode())

    def __enter__(self) -> "RunDirectory":
        self._lock = lock(self.path / ".lock", f"another process is writing {str(self.path)!r}")
        for folder in (self.path, self.latest.parent):
            remove_parts(folder)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def _read_json(self, name: str, remedy: str) -> dict[str, Any]:
        try:
            value = json.loads((self.path / name).read_text())
        except FileNotFoundError:
            raise InputError(f"{str(self.path)!r} has no {name}; {remedy}.") from None
        except (OSError, ValueError):
            value = None
        if not isinstance(value, dict):
            raise InputError(f"{str(self.path / name)!r} is damaged; {remedy}.")
        return value
