"""A thinned product is smaller, and every pair of values still meets in it."""

import itertools

from tests.covering import thinned

AXES = ("abcdef", range(3), "xyz")


def test_every_pair_meets_in_fewer_rows():
    rows = list(itertools.product(*AXES))
    chosen = thinned(rows, 2)
    for (i, first), (j, second) in itertools.combinations(enumerate(AXES), 2):
        assert {(row[i], row[j]) for row in chosen} == set(itertools.product(first, second))
    assert len(chosen) <= 24 < len(rows) == 54


def test_every_value_occurs_and_the_shorter_axes_take_turns():
    chosen = thinned(list(itertools.product(*AXES)), 1)
    assert len(chosen) == 6
    for i, axis in enumerate(AXES):
        assert {row[i] for row in chosen} == set(axis)
    counts = [sum(row[1] == value for row in chosen) for value in AXES[1]]
    assert counts == [2, 2, 2]


def test_the_whole_strength_is_the_whole_product():
    rows = list(itertools.product("ab", range(2)))
    assert thinned(rows, 2) == rows
