"""The drawing of a lineage: everything is in it, and survivors are told from the others."""

import numpy as np
import pytest

from fivo.errors import InputError
from fivo.report import plot_lineage, write_lineage
from fivo.report.lineage import MOST_STEPS, surviving
from tests.sentences import assert_one_sentence

ANCESTORS = np.array([[0, 0, 1], [2, 0, 2], [0, 1, 2]])
WEIGHTS = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
RESAMPLED = np.array([True, True, False])


def test_survivors_by_hand():
    """Particles 0 and 1 of the last step come from 2 and 0 of the second, those from 1 and 0 of the first."""
    expected = [[True, True, False], [True, False, True], [True, True, True]]
    assert surviving(ANCESTORS).tolist() == expected


def test_the_drawing_holds_every_particle_and_line():
    axes = plot_lineage(ANCESTORS, WEIGHTS, RESAMPLED, title="Particles of a < b").axes[0]
    others, survivors, dots, moments = axes.collections
    assert len(survivors.get_segments()) == 5, "three to the last step, and two to those of the second that live on"
    assert [segment.tolist() for segment in others.get_segments()] == [[[1, 1], [2, 2]]]
    assert dots.get_offsets().tolist() == [[t, i] for t in (1, 2, 3) for i in (1, 2, 3)]
    areas = dots.get_sizes().reshape(ANCESTORS.shape)
    assert areas[0, 0] == areas[0, 1] > areas[1, 0]
    assert areas[2, 0] == areas.max()
    assert [segment[0][0] for segment in moments.get_segments()] == [1.5, 2.5]
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == (
        "Particles of a < b",
        "timestep",
        "particle",
    )


def test_long_sequences_are_cut(tmp_path):
    many = MOST_STEPS + 5
    arguments = (np.zeros((many, 2), int), np.full((many, 2), 0.5), np.zeros(many, bool))
    assert len(plot_lineage(*arguments).axes[0].collections[2].get_offsets()) == 2 * MOST_STEPS
    write_lineage(tmp_path / "long.svg", *arguments, title="long")
    assert b"long" in (tmp_path / "long.svg").read_bytes()


def test_shapes_that_do_not_belong_together(tmp_path):
    with pytest.raises(InputError) as refusal:
        write_lineage(tmp_path / "no.svg", ANCESTORS, WEIGHTS[:2], RESAMPLED, title="")
    assert_one_sentence(refusal.value, "[2, 3]")
    assert not (tmp_path / "no.svg").exists()
