"""Shapes of evaluations: one for small splits, few for large ones, and never dependent on the batch size."""

import numpy as np
import pytest

from fivo._scoring import COMPILATION, SLOTS, nats_per_step, scoring_plan

SMALL = np.array([3, 9, 30, 4, 12])
rng = np.random.default_rng(0)
LARGE = np.concatenate([rng.integers(40, 500, 150), rng.integers(500, 4273, 20)])


def padded_to(plan, count):
    result = np.zeros(count, int)
    for indices, padded_length in plan:
        result[indices[indices >= 0]] = padded_length
    return result


@pytest.mark.parametrize("lengths", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("batch_size", [None, 1, 3, 200])
def test_every_sequence_once_in_chunks_of_one_shape_per_length(lengths, batch_size):
    plan = scoring_plan(lengths, 128, batch_size=batch_size)
    used = np.concatenate([indices for indices, _ in plan])
    assert sorted(used[used >= 0]) == list(range(len(lengths)))
    assert len({(len(indices), padded) for indices, padded in plan}) == len({padded for _, padded in plan})
    assert all(len(indices) <= (SLOTS // 128 if batch_size is None else batch_size) for indices, _ in plan)
    assert (padded_to(plan, len(lengths)) >= lengths).all()
    np.testing.assert_array_equal(
        padded_to(plan, len(lengths)), padded_to(scoring_plan(lengths, 128, batch_size=2), len(lengths))
    )


def test_shapes_are_worth_their_compilation():
    def shapes(lengths, num_particles, passes=1):
        return len({padded for _, padded in scoring_plan(lengths, num_particles, passes=passes)})

    assert shapes(SMALL, 128) == 1
    assert 1 == shapes(LARGE, 1) < shapes(LARGE, 128) <= shapes(LARGE, 128, passes=100) <= 16
    # One more shape saves at least what compiling it takes.
    wasted = (LARGE.max() - LARGE).sum() * 128
    assert wasted > COMPILATION


def test_one_sequence_is_always_possible():
    assert len(scoring_plan(np.array([10]), 10_000)) == 1


def test_the_papers_convention_is_not_the_mean_of_ratios():
    assert nats_per_step(np.array([-10.0, -2.0]), np.array([10, 1])) == pytest.approx(-12 / 11)
