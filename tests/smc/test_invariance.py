"""The estimate of a sequence is its own: padding, company and place in the batch leave it alone, given its key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from tests.fast import fast_jit
from tests.models.cases import CASES, FAMILIES
from tests.models.protocol import assert_close

pytestmark = pytest.mark.usefixtures("x64")

LENGTHS = (6, 9, 4)
# A program of its own each; what the proposals of a model do with missing entries differs little, so that some suffice.
# A smoothing proposal is what could read the padding.
SMOOTHING = [case for case in CASES if case.name in ("vrnn-samples-smoothing", "srnn-notes-smoothing")]
MASKED = ("linear_gaussian-optimal", "linear_gaussian-smoothing", "discrete_hmm-optimal", "stochastic_volatility-prior")
SETTINGS = [
    *(pytest.param(case, False, "often", id=f"{case}-complete") for case in [*FAMILIES, *SMOOTHING]),
    *(pytest.param(case, True, "often", id=f"{case}-missing") for case in CASES if case.name in MASKED),
    *(pytest.param(case, True, "never", id=f"{case}-never") for case in CASES if case.name == "discrete_hmm-optimal"),
]


def runner(criterion):
    def run(model, batch, keys):
        keep = ("log_weights", "ancestors", "latents")
        return fivo.ParticleFilter(6, "systematic", criterion)(model, batch, key=keys, keep=keep)

    return fast_jit(run)


RUN = {"often": runner(fivo.resampling.ESSBelow(0.95)), "never": runner(fivo.resampling.Never())}


def row(result, i, length):
    """What the result says of sequence i, without the padding."""
    over_time = (
        result.log_increments,
        result.ess,
        result.resampled,
        result.kl,
        result.log_weights,
        result.ancestors,
        result.latents,
    )
    return (
        jax.tree.map(lambda leaf: leaf[i, :length], over_time),
        jax.tree.map(lambda leaf: leaf[i], (result.log_evidence, result.alive, result.particles)),
    )


@pytest.mark.parametrize(("case", "masked", "resampling"), SETTINGS)
def test_a_sequence_is_filtered_as_if_alone(case, masked, resampling):
    model, run = case.build(np.float64), RUN[resampling]
    xs, masks = case.sequences(*LENGTHS), case.masks(*LENGTHS) if masked else None
    keys = jax.random.split(jax.random.key(3), len(xs))

    def batch_of(order, pad_to=None):
        chosen = None if masks is None else [masks[i] for i in order]
        return fivo.Batch.from_sequences([xs[i] for i in order], mask=chosen, pad_to=pad_to)

    alone = run(model, batch_of([0]), keys[:1])
    together = run(model, batch_of([0, 1, 2], pad_to=11), keys)
    moved = run(model, batch_of([2, 0, 1], pad_to=11), keys[jnp.asarray([2, 0, 1])])
    assert bool(jnp.all(together.log_evidence < 0))
    assert_close(row(together, 0, 6), row(alone, 0, 6), "padded and in company")
    for place, i in enumerate([2, 0, 1]):
        assert_close(row(moved, place, LENGTHS[i]), row(together, i, LENGTHS[i]), f"sequence {i} in another place")
    batch = batch_of([0, 1, 2], pad_to=11)
    emptied = run(model, fivo.Batch(batch.observations, batch.lengths.at[1].set(0), batch.mask), keys)
    # No frames have evidence one.
    assert emptied.log_evidence.tolist() == [together.log_evidence[0], 0, together.log_evidence[2]]
    assert bool(emptied.alive[1])
    assert bool(jnp.any(together.resampled)) == (resampling == "often")


def test_nothing_happens_behind_the_end():
    case = CASES[0]
    batch = fivo.Batch.from_sequences(case.sequences(*LENGTHS), pad_to=11)
    result = RUN["often"](case.build(np.float64), batch, jax.random.split(jax.random.key(3), 3))
    for i, length in enumerate(LENGTHS):
        assert np.all(result.log_increments[i, :length] != 0)
        assert np.all(result.log_increments[i, length:] == 0)
        assert np.all(result.kl[i, length:] == 0)
        assert not result.resampled[i, length:].any()
        assert np.array_equal(result.ancestors[i, length:], np.tile(np.arange(6), (11 - length, 1)))


def test_one_key_is_split_per_sequence():
    case = CASES[0]
    model, batch = case.build(np.float64), fivo.Batch.from_sequences(case.sequences(*LENGTHS))
    one = RUN["often"](model, batch, jax.random.key(8))
    many = RUN["often"](model, batch, jax.random.split(jax.random.key(8), 3))
    assert jax.tree.all(jax.tree.map(np.array_equal, one, many))
