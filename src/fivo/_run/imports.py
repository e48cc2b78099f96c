"""Objects that a user names on the command line or in an experiment: naming one runs its module.

It is code that the user chose to run. Nothing that a run directory says is ever imported.
"""

import importlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fivo._run.fitting import prepare
from fivo.data import Dataset
from fivo.errors import InputError
from fivo.training import Plan

OBJECT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def prepare_named(settings: Mapping[str, Any], data_dir: str | Path | None = None) -> Plan:
    """The plan of settings in which `model`, `bound` and `dataset` may name objects to import.

    Args:
        settings: Settings by their flat names.
        data_dir: Where to look for datasets first.

    Returns:
        The plan.
    """
    rest = dict(settings)
    own = {name: rest.pop(name) for name in ("model", "bound") if ":" in str(rest.get(name, ""))}
    dataset = rest.pop("dataset") if names_object(rest.get("dataset")) else ""
    return prepare(
        imported(own["model"]) if "model" in own else None,
        made_dataset(dataset, data_dir) if dataset else None,
        bound=imported(own["bound"]) if "bound" in own else None,
        settings=rest,
        data_dir=data_dir,
        model_name=own.get("model", ""),
        bound_name=own.get("bound", ""),
        data_name=dataset,
    )


def names_object(value: Any) -> bool:
    """Whether a setting is written package.module:object, and no file is called so."""
    return isinstance(value, str) and OBJECT.fullmatch(value) is not None and not os.path.exists(value)


def made_dataset(name: str, data_dir: str | Path | None = None) -> Dataset:
    """What the function `package.module:function` makes of the folder where data is looked for first.

    Args:
        name: Of the function.
        data_dir: Its only argument.

    Returns:
        The dataset.
    """
    dataset = imported(name)(data_dir)
    if not isinstance(dataset, Dataset):
        raise InputError(f"{name} must return a fivo.data.Dataset, got {type(dataset).__name__}.")
    return dataset


def imported(name: str) -> Any:
    """The object of `package.module:object`; modules are looked for in the current directory too."""
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise InputError(f"an object to import must be named package.module:object, got {name!r:.60}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name!r:.60} cannot be imported: there is no module {error.name!r:.60}; check the name."
        ) from None
    except AttributeError:
        raise InputError(f"the module {module_name!r:.60} has no {path!r:.60}; check the name.") from None
    return found
