"""Recipes: named settings of the optimizer and of validation, kept as data in `recipes.toml`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fivo.errors import InputError

RECIPES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("recipes.toml").read_text())
"""The recipes by name: settings by their flat names, and what differs for a dataset by the dataset's name."""


def with_recipe(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Flat settings with those of their recipe beneath them, and without its name.

    Args:
        flat: Settings by their flat names; `recipe`, if given, names one of `RECIPES`.

    Returns:
        The settings of the recipe, those that it has for the dataset, and over both what `flat` says.
    """
    given = dict(flat)
    name = given.pop("recipe", "paper")
    if str(name) not in RECIPES:
        raise InputError(f"the recipe must be one of {', '.join(RECIPES)}, got {name!r:.60}.")
    recipe = RECIPES[str(name)]
    general = {key: value for key, value in recipe.items() if not isinstance(value, dict)}
    return {**general, **recipe.get(str(given.get("dataset")), {}), **given}
