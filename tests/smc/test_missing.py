"""Missing entries are integrated out: what is left is the evidence of what was seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.bounds import FIVO, IWAE
from tests.fast import fast_jit
from tests.helpers import mean_within, repeated
from tests.models.cases import CASES

pytestmark = pytest.mark.usefixtures("x64")

ONE_A_MODEL = [
    case
    for case in CASES
    if case.name in ("linear_gaussian-smoothing", "discrete_hmm-optimal", "stochastic_volatility-learned")
]
EXACT = {case.name: case for case in CASES if case.name.startswith(("linear_gaussian", "discrete_hmm"))}


def masked_batch(case, length=6):
    return fivo.Batch.from_sequences(case.sequences(length), mask=case.masks(length))


@pytest.mark.parametrize("name", ["linear_gaussian-prior", "linear_gaussian-optimal", "linear_gaussian-learned"])
def test_the_filter_has_the_evidence_of_what_was_seen_on_average(name):
    """Emission noise is correlated, so leaving entries out of a sum would not do."""
    case = EXACT[name]
    model, batch = case.build(np.float64), masked_batch(case)
    assert 0 < int(batch.mask.sum()) < batch.mask.size
    assert bool(jnp.any(batch.mask.any(axis=2) & ~batch.mask.all(axis=2))), "some frame must be partly missing"
    run = fast_jit(lambda batch: FIVO(16, "systematic")(model, batch, key=jax.random.key(0)).log_evidence)
    drawn = run(repeated(batch, 4000))
    ratios = np.exp(np.asarray(drawn - model.log_evidence(batch)[0]))
    assert ratios.var() < 1
    assert mean_within(ratios, 1)
    assert not mean_within(ratios, np.exp(float(model.log_evidence(batch)[0] - wrong_evidence(model, batch))))


def wrong_evidence(model, batch):
    """The evidence with zeros for what is missing."""
    return model.log_evidence(fivo.Batch(batch.observations, batch.lengths))[0]


def test_the_smoothing_proposal_knows_what_is_missing():
    """Its weights are constant only if it conditions on the seen entries of the future, and on nothing else."""
    case = EXACT["linear_gaussian-smoothing"]
    model, batch = case.build(np.float64), masked_batch(case)
    drawn = fast_jit(lambda key: IWAE(3)(model, batch, key=key).log_evidence)(jax.random.key(1))
    np.testing.assert_allclose(drawn, model.log_evidence(batch), rtol=1e-9)


@pytest.mark.parametrize("name", ["linear_gaussian-optimal", "discrete_hmm-optimal"])
def test_the_optimal_proposal_knows_what_is_missing(name):
    """With one frame its weights are constant."""
    case = EXACT[name]
    model = case.build(np.float64)
    x = case.sequences(1)[0]
    masks = [np.arange(x.shape[1]) == i for i in range(x.shape[1])] + [np.zeros(x.shape[1], bool)]
    batch = fivo.Batch.from_sequences([x] * len(masks), mask=[mask[None] for mask in masks])
    drawn = fast_jit(lambda key: FIVO(3)(model, batch, key=key).log_evidence)(jax.random.key(1))
    np.testing.assert_allclose(drawn, model.log_evidence(batch), rtol=1e-9, atol=1e-9)
    assert drawn[-1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("case", ONE_A_MODEL, ids=str)
def test_a_mask_that_hides_nothing_changes_nothing(case):
    model, xs = case.build(np.float64), case.sequences(5, 3)
    run = fast_jit(lambda batch: FIVO(4)(model, batch, key=jax.random.key(2)).log_evidence)
    complete = run(fivo.Batch.from_sequences(xs))
    all_seen = run(fivo.Batch.from_sequences(xs, mask=[np.ones(x.shape, bool) for x in xs]))
    np.testing.assert_allclose(all_seen, complete, rtol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nan_can_stand_for_missing(case):
    xs, masks = case.sequences(6, 3), case.masks(6, 3)
    declared = fivo.Batch.from_sequences([x.astype(np.float64) for x in xs], mask=masks)
    with_nan = fivo.Batch.from_sequences(
        [np.where(m, x, np.nan) for x, m in zip(xs, masks, strict=True)], missing="nan"
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, declared, with_nan))
