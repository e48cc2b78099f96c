"""The numbers are those from before the library was redesigned, at equal keys."""

import json

import numpy as np
import pytest

from tests.frozen.cases import FILE, all_cases

FROZEN = json.loads(FILE.read_text())


@pytest.mark.parametrize("name", FROZEN)
def test_estimates_and_gradients_are_what_they_were(x64, name):
    found = all_cases()[name]()
    assert found.keys() == FROZEN[name].keys()
    for part, expected in FROZEN[name].items():
        np.testing.assert_allclose(found[part], expected, rtol=1e-9, atol=1e-9, err_msg=part)
