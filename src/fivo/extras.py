"""Packages that only some features need; `pip install fivo` leaves them out."""

import importlib
from types import ModuleType

from fivo.errors import InputError

__all__ = ["EXTRAS", "require"]

EXTRAS = {
    "dask_jobqueue": "cluster",
    "distributed": "cluster",
    "flatbuffers": "app",
    "jinja2": "app",
    "markupsafe": "app",
    "matplotlib": "app",
    "mido": "app",
    "polars": "app",
    "soundfile": "app",
    "tensorboardX": "tensorboard",
    "xarray": "app",
}
"""Which extra of this package brings a package."""


def require(module: str, purpose: str) -> ModuleType:
    """The module of that name, imported; without its package, what to install for it.

    Args:
        module: A dotted name, such as `matplotlib.figure`; its package is one of `EXTRAS`.
        purpose: What cannot be done without it, as the beginning of a sentence: "Writing MIDI files".
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:  # OSError: the package is installed, but not the library that it calls
        raise InputError(
            f"{purpose} needs the package {package}; install it with: pip install 'fivo[{EXTRAS[package]}]'."
        ) from error
