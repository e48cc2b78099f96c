"""The numbers are those from before the library was redesigned, at equal keys."""

import json
import os

import numpy as np
import pytest

from tests.frozen.cases import FILE, all_cases

FROZEN = json.loads(FILE.read_text())
CASES = list(FROZEN) if os.environ.get("FIVO_TEST_FROZEN") == "all" else list(FROZEN)[::3]
"""A third of them, unless all are asked for: they take two minutes, and only a redesign moves them."""


@pytest.mark.parametrize("name", CASES)
def test_estimates_and_gradients_are_what_they_were(x64, name):
    found = all_cases()[name]()
    assert found.keys() == FROZEN[name].keys()
    for part, expected in FROZEN[name].items():
        np.testing.assert_allclose(found[part], expected, rtol=1e-9, atol=1e-9, err_msg=part)
