"""The drawing of a lineage: everything is in it, and survivors are told from the others."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.report import write_lineage
from fivo.report.lineage import MOST_STEPS, surviving
from tests.sentences import assert_one_sentence

ANCESTORS = np.array([[0, 0, 1], [2, 0, 2], [0, 1, 2]])
WEIGHTS = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
RESAMPLED = np.array([True, True, False])
SVG = "{http://www.w3.org/2000/svg}"


def drawn(path, *arguments) -> ElementTree.Element:
    write_lineage(path, *arguments, title="Particles of a < b")
    return ElementTree.parse(path).getroot()


def test_survivors_by_hand():
    """Particles 0 and 1 of the last step come from 2 and 0 of the second, those from 1 and 0 of the first."""
    expected = [[True, True, False], [True, False, True], [True, True, True]]
    assert surviving(ANCESTORS).tolist() == expected


def test_the_drawing_holds_every_particle_and_line(tmp_path):
    root = drawn(tmp_path / "lineage.svg", ANCESTORS, WEIGHTS, RESAMPLED)
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == ANCESTORS.size
    areas = np.array([float(circle.get("r")) for circle in circles]).reshape(ANCESTORS.shape) ** 2
    assert areas[0, 0] == areas[0, 1] > areas[1, 0]
    assert areas[2, 0] == areas.max()
    lines = {path.get("class"): path.get("d").count("M") for path in root.iter(f"{SVG}path")}
    assert lines["line line0"] == 5, "three to the last step, and two to those of the second that live on"
    assert lines["grid"] == 1
    assert sum(path.get("class") == "reference" for path in root.iter(f"{SVG}path")) == 2
    assert "a < b" in "".join(root.itertext())


def test_long_sequences_are_cut(tmp_path):
    many = MOST_STEPS + 5
    root = drawn(tmp_path / "long.svg", np.zeros((many, 2), int), np.full((many, 2), 0.5), np.zeros(many, bool))
    assert len(list(root.iter(f"{SVG}circle"))) == 2 * MOST_STEPS


def test_shapes_that_do_not_belong_together(tmp_path):
    with pytest.raises(InputError) as refusal:
        write_lineage(tmp_path / "no.svg", ANCESTORS, WEIGHTS[:2], RESAMPLED, title="")
    assert_one_sentence(refusal.value, "[2, 3]")
    assert not (tmp_path / "no.svg").exists()
