"""Objects that a user names on the command line. Naming one runs its module: it is code that the user chose to run.

Nothing that a run directory says is ever imported.
"""

import importlib
import os
import sys
from typing import Any

from fivo.errors import InputError


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
