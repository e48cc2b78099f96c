"""A run's directory as training sees it: its settings are typed, and may change only where that is safe."""

import platform
from importlib.metadata import version
from typing import Any

import msgspec

from fivo import __version__, runs
from fivo.data import Dataset, TableFacts
from fivo.errors import InputError
from fivo.runs import Provenance, Result, TableRecord
from fivo.settings import EXTENDABLE, Settings, from_record
from fivo.training.commit import code_commit


class RunDirectory(runs.RunDirectory):
    """The files of a training run; hold it as a context manager to write.

    Args:
        path: The directory; it need not exist yet.
    """

    def config(self) -> Settings:
        """Read the settings of the run.

        Returns:
            The settings.
        """
        return from_record(self.settings(), repr(str(self.config_path)))

    def fingerprint(self) -> str:
        """Read which data the run was trained on.

        Returns:
            A digest of the data.
        """
        return self.provenance().dataset_fingerprint

    def check(self, config: Settings, fingerprint: str, *, override: bool) -> bool:
        """Refuse to continue a run on other data or, unless overridden, with other settings.

        Args:
            config: The settings to continue with.
            fingerprint: A digest of the data to continue on.
            override: Whether settings may change.

        Returns:
            Whether they change.
        """
        if not self.exists():
            self._check_nothing_is_left()
            return False
        changed = self._changes(config)
        if changed and not override:
            raise InputError(_refusal(str(self.path), *changed[0]))
        if self.fingerprint() != fingerprint:
            raise InputError(
                f"{str(self.path)!r} was trained on other data than {config.data.dataset!r} now is; choose another "
                "--out."
            )
        return bool(changed)

    def record_provenance(self, dataset: Dataset) -> None:
        """Write down what is about to train the run; before its first settings, which make this a run.

        Args:
            dataset: The data.
        """
        names = ("jax", "jaxlib", "equinox", "numpyro", "optax")
        versions = {"fivo": __version__} | {name: version(name) for name in names}
        self.write(Provenance(dataset.fingerprint, code_commit(), platform.python_version(), versions))
        if dataset.table is not None:
            self.write(TableRecord(TableFacts.of(dataset).to_plain()))

    def record(self, config: Settings, step: int) -> None:
        """Write down the settings that the run is continued with.

        Args:
            config: The settings.
            step: From this step on.
        """
        changed_at = list(self.identity().changed_at) if self.exists() else []
        if step and self.exists() and self._changes(config):
            changed_at.append(step)
        self.write_settings(msgspec.to_builtins(config), changed_at)

    def _changes(self, config: Settings) -> list[tuple[str, Any, Any]]:
        """The settings that would make another run of this one: name, old and new value."""
        old, new = _named(self.config()), _named(config)
        # A cosine goes down over the steps, so that more of them are another schedule.
        extendable = EXTENDABLE - ({"steps"} if new.get("schedule") == "cosine" else set())
        names = [name for name in {**old, **new} if name not in extendable]
        return [(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]

    def _check_nothing_is_left(self) -> None:
        """Refuse to start where another run has lost its settings; its provenance is written before them."""
        others = self.checkpoints.exist() or self.metrics_path.exists() or (self.path / Result.FILE).exists()
        if others:
            raise InputError(
                f"{str(self.path)!r} holds a run that has lost its settings ({self.config_path.name}); restore the "
                "file from a copy, or choose another --out."
            )


def _named(settings: Settings) -> dict[str, Any]:
    """Every setting by its own name, and the kinds of the sections by the sections' names."""
    named: dict[str, Any] = {}
    for section, content in msgspec.to_builtins(settings).items():
        if section in ("updates", "validation", "own"):
            named[section] = content
            continue
        for name, value in content.items():
            named[section if name == "kind" else name] = value
    return named


def _refusal(path: str, name: str, was: Any, now: Any) -> str:
    """Why a run is not continued, in one sentence."""
    end = "choose another --out, or pass --override to continue it all the same (from Python: out=, override=True)."
    for part in ("model", "bound", "optimizer"):
        if name == f"{part}_digest":
            what = "structure, shapes or types" if part == "optimizer" else "structure, shapes, types or first values"
            return f"{path!r} holds a run with another {part}, of other {what}; {end}"
    if name == "validation":
        kinds = [f"{given['name']!r:.60} of `validation=`" if given else "the objective itself" for given in (was, now)]
        other = "another " if kinds[0] == kinds[1] else ""
        return f"{path!r} holds a run whose best step {kinds[0]} chose, but {other}{kinds[1]} was asked for; {end}"
    if name == "updates":
        differ = next(key for key in {**was, **now} if was.get(key) != now.get(key))
        return f"{path!r} holds a run with other updates ({differ!r:.60} is new, missing or changed); {end}"
    if name == "own":
        return f"{path!r} holds a run with config={was!r:.60} where {now!r:.60} was given; {end}"
    return f"{path!r} holds a run with {name}={was!r} where {now!r} was asked for; {end}"
