"""The commands that reproduce a number."""

import shlex
from typing import Any


def train_command(settings: dict[str, Any], out: str) -> str:
    """The command that reproduces a run."""
    words = [f"fivo fit {shlex.quote(str(settings['dataset']))}"]
    for name, value in settings.items():
        if name == "dataset" or value == "":
            continue
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words += [f"--{option}"] if value else []
        else:
            words.append(f"--{option} {shlex.quote(str(value))}")
    return " ".join([*words, f"--out {out}"])
