"""Products of parameters, thinned out to the rows in which every pair of values still meets."""

import itertools
import os
from collections.abc import Collection, Sequence

import pytest

ALL = os.environ.get("FIVO_TEST_PRODUCTS") == "all"


def covering(names: str, *axes: Collection[object], strength: int = 2) -> pytest.MarkDecorator:
    """Parametrise a test with few rows of a product; FIVO_TEST_PRODUCTS=all takes them all.

    Args:
        names: the parameters, separated by commas.
        axes: the values of each, in the same order.
        strength: any values of so many parameters meet in some row.
    """
    rows = list(itertools.product(*axes))
    return pytest.mark.parametrize(names, rows if ALL else thinned(rows, strength))


def thinned(rows: Sequence[tuple], strength: int) -> list[tuple]:
    """Rows of a product in which every combination of `strength` values occurs: greedily, always the same ones."""

    def combinations(row: tuple) -> set[tuple]:
        return set(itertools.combinations(enumerate(row), strength))

    missing, chosen = set().union(*map(combinations, rows)), []
    while missing:
        # Of equally good rows the one whose values were used least, so that they take turns.
        best = max(rows, key=lambda row: (len(combinations(row) & missing), -_used(row, chosen)))
        chosen.append(best)
        missing -= combinations(best)
    return sorted(chosen, key=rows.index)


def _used(row: tuple, chosen: list[tuple]) -> int:
    return sum(value == other for before in chosen for value, other in zip(row, before, strict=True))
