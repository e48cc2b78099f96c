"""The colours of charts stay apart for colour-blind readers, and from the paper."""

from itertools import combinations

import numpy as np
import pytest

from fivo.report.style import DARK_COLOURS, DARK_PAPER, LIGHT_COLOURS, LIGHT_PAPER

# Machado, Oliveira and Fernandes (2009), "A physiologically-based model for simulation of color vision deficiency",
# severity 1; each matrix acts on linear red, green and blue.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(colour: np.ndarray) -> np.ndarray:
    ratio = TO_XYZ @ colour / TO_XYZ.sum(axis=1)
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("colours", [LIGHT_COLOURS, DARK_COLOURS], ids=["light", "dark"])
@pytest.mark.parametrize("vision", VISIONS.values(), ids=VISIONS)
def test_colours_stay_apart(colours, vision):
    """A distance of 2.3 in CIELAB can just be seen; ten times as much can be seen in thin lines."""
    seen = [lab(np.clip(vision @ linear(colour), 0, 1)) for colour in colours]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 23


@pytest.mark.parametrize(("colours", "paper"), [(LIGHT_COLOURS, LIGHT_PAPER), (DARK_COLOURS, DARK_PAPER)])
def test_colours_stand_out_from_the_paper(colours, paper):
    """The contrast that WCAG 2.1 asks of graphics, 3 to 1."""
    for colour in colours:
        darker, brighter = sorted(TO_XYZ[1] @ linear(each) for each in (colour, paper))
        assert (brighter + 0.05) / (darker + 0.05) >= 2.99
