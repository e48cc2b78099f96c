"""Names of run directories: safe on any disk, readable, and different for different settings."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from fivo._run import names_object
from fivo.settings import EXTENDABLE, Settings, changed, flattened

ALWAYS = ("dataset", "bound", "particles", "hidden", "learning_rate", "seed")
LONGEST_PART = 32


def slug_of(settings: Settings, varied: tuple[str, ...]) -> str:
    """The varied settings in words, and a digest of all settings that define the run."""
    flat = flattened(settings)
    parts = [
        _safe(_source(flat["dataset"])),
        flat["bound"],
        # A model of the user's own has no units, and an exact bound no particles.
        *(f"{letter}{flat[name]}" for letter, name in (("n", "particles"), ("h", "hidden")) if name in flat),
        f"lr{flat['learning_rate']:g}",
        f"seed{flat['seed']}",
    ]
    # Without defaults, as in the digest: experiments that vary other settings share the runs that vary in none.
    told = changed(settings)
    parts += [_safe(_word(name, told[name])) for name in varied if name not in ALWAYS and name in told]
    return "-".join([*filter(None, parts), _digest(settings)])


def _source(dataset: str) -> str:
    """A path's stem, or of package.module:function the last two names."""
    module, _, function = dataset.partition(":")
    return f"{module.rpartition('.')[2]}_{function}" if names_object(dataset) else Path(dataset).stem


def _word(name: str, value: Any) -> str:
    return name if value is True else f"{name}_{value}"


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:LONGEST_PART]


def _digest(settings: Settings) -> str:
    # Without what a run may be continued with changed: a longer sweep finds its shorter runs again. Without defaults,
    # too: a setting that a later version adds changes no name.
    told = {name: value for name, value in changed(settings).items() if name not in EXTENDABLE}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]
