"""Names of run directories: safe on any disk, readable, and different for different settings."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from fivo.training import TrainConfig
from fivo.training.run_directory import EXTENDABLE

ALWAYS = ("dataset", "bound", "particles", "hidden", "learning_rate", "seed")
LONGEST_PART = 32


def slug_of(config: TrainConfig, varied: tuple[str, ...]) -> str:
    """What is varied in words, and a digest of all settings that make the run what it is."""
    parts = [
        _safe(Path(config.dataset).stem),
        config.bound,
        f"n{config.particles}",
        f"h{config.hidden}",
        f"lr{config.learning_rate:g}",
        f"seed{config.seed}",
    ]
    # Without defaults, as in the digest: experiments that vary other settings share the runs that vary in none.
    defaults = TrainConfig()
    others = [name for name in varied if name not in ALWAYS and getattr(config, name) != getattr(defaults, name)]
    parts += [_safe(_word(name, getattr(config, name))) for name in others]
    return "-".join([*filter(None, parts), _digest(config)])


def _word(name: str, value: Any) -> str:
    return name if value is True else f"{name}_{value}"


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:LONGEST_PART]


def _digest(config: TrainConfig) -> str:
    # Without what a run may be continued with changed: a longer sweep finds its shorter runs again.
    settings = {name: value for name, value in msgspec.to_builtins(config).items() if name not in EXTENDABLE}
    defaults = msgspec.to_builtins(TrainConfig())
    # Without defaults, too: a setting that a later version adds changes no name.
    told = {name: value for name, value in settings.items() if value != defaults[name]}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]
