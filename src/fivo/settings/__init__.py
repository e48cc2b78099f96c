"""What a training run is, as data: one place per option for Python, TOML and the command line.

A run's settings have five sections. `model`, `bound`, `optimizer` and `data` are tagged unions: their `kind` says which
fields they have. Users write them flat, as `particles=8` or `--particles 8`; a section's kind goes by the section's own
name, as in `bound="fivo"`.
"""

from fivo.settings._flat import (
    DEFAULTS,
    EXTENDABLE,
    ONLY_TABLES,
    OPTIONS,
    Option,
    changed,
    flattened,
    from_record,
    make_settings,
    read_settings,
    read_toml,
)
from fivo.settings._recipes import RECIPES
from fivo.settings._sections import (
    DMM,
    ELBO,
    FIVO,
    IWAE,
    SRNN,
    VRNN,
    Adam,
    Exact,
    LinearGaussianModel,
    Networks,
    OwnBound,
    OwnData,
    OwnModel,
    OwnOptimizer,
    Recurrent,
    Settings,
    Source,
    Table,
    Training,
)

__all__ = [
    "DEFAULTS",
    "DMM",
    "ELBO",
    "EXTENDABLE",
    "FIVO",
    "IWAE",
    "ONLY_TABLES",
    "OPTIONS",
    "RECIPES",
    "SRNN",
    "VRNN",
    "Adam",
    "Exact",
    "LinearGaussianModel",
    "Networks",
    "Option",
    "OwnBound",
    "OwnData",
    "OwnModel",
    "OwnOptimizer",
    "Recurrent",
    "Settings",
    "Source",
    "Table",
    "Training",
    "changed",
    "flattened",
    "from_record",
    "make_settings",
    "read_settings",
    "read_toml",
]
