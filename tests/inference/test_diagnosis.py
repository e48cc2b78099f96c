"""Four models with a known culprit, told apart; and a trained run taken through the whole diagnosis."""

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import numpyro.distributions as dist
import pytest

import fivo
from fivo._scoring import score, scoring_plan
from fivo.bounds import FIVO
from fivo.data import Split
from fivo.inference import diagnose, diagnose_model, trace_lineage
from fivo.inference.diagnosis import distinct
from fivo.models import LinearGaussian, simulate
from fivo.resampling import Always
from fivo.runs import Diagnosis
from fivo.smc import lineages
from tests.sentences import assert_one_sentence

NUM_STEPS, LADDER, REPEATS = 20, (2, 64), 8


def autoregression(noise: float, proposal: str = "prior") -> LinearGaussian:
    return LinearGaussian(
        transition_matrix=jnp.array([[0.9]]),
        transition_covariance=jnp.array([[0.3]]),
        emission_matrix=jnp.array([[1.0]]),
        emission_covariance=jnp.array([[noise]]),
        initial_mean=jnp.array([0.0]),
        initial_covariance=jnp.array([[1.0]]),
        proposal=proposal,
    )


def random_walk(proposal: str = "prior") -> LinearGaussian:
    """A position seen through its slowly changing velocity's sum: what a frame says of velocity comes later."""
    return LinearGaussian(
        transition_matrix=jnp.array([[1.0, 1.0], [0.0, 1.0]]),
        transition_covariance=jnp.array([[1e-3, 0.0], [0.0, 1.0]]),
        emission_matrix=jnp.array([[1.0, 0.0]]),
        emission_covariance=jnp.array([[1e-2]]),
        initial_mean=jnp.array([0.0, 0.0]),
        initial_covariance=jnp.array([[1.0, 0.0], [0.0, 1.0]]),
        proposal=proposal,
    )


def sequences(model: LinearGaussian, scale: float = 1.0) -> list[np.ndarray]:
    keys = jax.random.split(jax.random.key(0), 8)
    return [scale * np.asarray(simulate(model, NUM_STEPS, key=key).observations) for key in keys]


CASES = {
    # Almost noiseless observations: a bootstrap proposal hits them with one particle in hundreds.
    "proposal": (autoregression(3e-5), sequences(autoregression(3e-5))),
    # The prior is a fair proposal, but two particles are too few.
    "particles": (autoregression(1.0), sequences(autoregression(1.0))),
    # The smoothing proposal sees almost noiseless frames to come, and the targets do not.
    "targets": (random_walk("smoothing"), sequences(random_walk())),
    # The best proposal there is, and data half as large again as the model has them.
    "model": (autoregression(30.0, "optimal"), sequences(autoregression(30.0), 1.5)),
}
PF = fivo.ParticleFilter(LADDER[0])


@pytest.fixture(scope="module", params=CASES)
def diagnosed(request):
    model, data = CASES[request.param]
    pf = fivo.ParticleFilter(LADDER[0], criterion=Always()) if request.param == "targets" else PF
    return request.param, model, data, diagnose_model(model, data, pf, particles=LADDER, repeats=REPEATS)


def test_context_is_filtered_and_not_counted():
    """With masks and inputs: beside the exact log p(x_s:T | x_1:s-1) and its number of steps."""
    model = LinearGaussian(**{**autoregression(1.0).parameters._asdict(), "input_matrix": jnp.array([[0.8]])})
    rng, starts = np.random.default_rng(0), (6, 0, 13)
    xs = [3 * rng.standard_normal((15, 1)).astype(np.float32) for _ in starts]
    masks = tuple(rng.random(x.shape) > 0.2 for x in xs)
    inputs = tuple(rng.standard_normal((15, 1)).astype(np.float32) for _ in starts)
    split = Split(tuple(xs), masks, inputs, starts)
    result = diagnose_model(model, split, PF, particles=(256,), repeats=6)
    whole = fivo.Batch.from_sequences(xs, mask=masks, inputs=inputs)
    before = fivo.Batch(whole.observations, jnp.asarray(starts), whole.mask, whole.inputs)
    exact = float(jnp.sum(model.log_evidence(whole) - model.log_evidence(before))) / (3 * 15 - sum(starts))
    row = result.rows[-1]
    assert abs(row.bound - exact) < 4 * row.standard_error + 2 * row.half_log_variance
    assert len(row.over_time["ess"]) == 15
    assert row.over_time["ess"][-1] > 0


def test_the_culprit_is_found_and_named(diagnosed):
    culprit, _, _, result = diagnosed
    assert result.verdict.culprit == culprit
    first = result.verdict.sentences[0]
    assert culprit in first
    assert first.endswith(".")


def test_the_numbers_are_right(diagnosed):
    """The bound below the exact evidence of the data; the sandwich around what simulated data have on average."""
    culprit, model, data, result = diagnosed
    exact = float(jnp.sum(model.log_evidence(fivo.Batch.from_sequences(data)))) / (len(data) * NUM_STEPS)
    for row in result.rows:
        assert row.bound < exact + 4 * row.standard_error
        assert row.sandwich.lower <= row.sandwich.upper + 4 * row.sandwich.standard_error
        assert 0 < row.ess <= 1
        assert all(len(curve) == NUM_STEPS for curve in row.over_time.values())
    few, many = result.rows
    assert many.bound > few.bound
    if culprit != "proposal":
        gap = exact - many.bound
        assert abs(gap - many.half_log_variance) < 0.02, "the estimate of the gap is the gap"
        assert many.sandwich.gap < 0.1
    assert (abs(many.kl) < 1e-6) == (model.proposal_kind == "prior")
    assert msgspec.json.decode(msgspec.json.encode(result), type=Diagnosis) == result, "no number is NaN"


def test_distinct_ancestors_by_hand():
    index = lineages(jnp.asarray([[[0, 0, 1], [2, 0, 2], [0, 0, 0]]]))
    assert distinct(index).tolist() == [[2, 2, 3]]


def test_a_run_is_diagnosed(fivo_run, elbo_run):
    result = diagnose(fivo_run, particles=(2, 8), num_sequences=2, repeats=2)
    assert [row.particles for row in result.rows] == [2, 8]
    assert result.own_particles == 2
    assert result.sequences == [0, 2]
    assert result.verdict.culprit in ("proposal", "particles", "model")
    unresampled = diagnose(elbo_run, particles=(2,), num_sequences=1, repeats=2)
    assert [row.particles for row in unresampled.rows] == [1, 2]
    assert all(row.resampled == 0 for row in unresampled.rows)


def test_the_lineage_of_a_sequence(fivo_run):
    lineage = trace_lineage(fivo_run, "test", 1, num_particles=5)
    length = len(fivo_run.dataset.splits["test"][1])
    assert lineage.ancestors.shape == lineage.weights.shape == (length, 5)
    np.testing.assert_allclose(lineage.weights.sum(axis=1), 1, rtol=1e-5)
    own = np.arange(5)
    assert all((row == own).all() for row, moved in zip(lineage.ancestors, lineage.resampled, strict=True) if not moved)
    with pytest.raises(fivo.InputError) as refusal:
        trace_lineage(fivo_run, "test", 3)
    assert_one_sentence(refusal.value, "test:3", "below 3")


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"split": "tset"}, "'tset'"),
        ({"particles": (0, 4)}, "[0, 4]"),
        ({"particles": ()}, "[]"),
        ({"repeats": 1}, "repeats must be at least 2"),
        ({"num_sequences": 0}, "num_sequences must be at least 1"),
    ],
)
def test_bad_settings(fivo_run, settings, part):
    with pytest.raises(fivo.InputError) as refusal:
        diagnose(fivo_run, **settings)
    assert_one_sentence(refusal.value, part)


class Network(fivo.models.SequenceModel):
    """A model of a user's own, whose network holds a function."""

    network: eqx.nn.MLP

    def initial_state(self, context):
        return jnp.zeros(1)

    def prior(self, state, context):
        return dist.Normal(0.9 * state, 1.0)

    def emission(self, state, latent, context):
        return dist.Normal(self.network(latent), 1.0)


def test_a_model_with_functions_among_its_fields_is_diagnosed_and_scored():
    model = Network(eqx.nn.MLP(1, 1, 4, 1, key=jax.random.key(0)))
    data = [np.asarray(simulate(model, 5, key=jax.random.key(i)).observations) for i in range(3)]
    result = diagnose_model(model, data, PF, particles=(2, 4), repeats=2)
    assert [row.particles for row in result.rows] == [2, 4]
    plan = scoring_plan(np.array([5, 5, 5]), 4)
    values = score(model, FIVO(4), data, plan, key=jax.random.key(0))
    assert np.isfinite(values).all()
