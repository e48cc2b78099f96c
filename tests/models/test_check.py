"""`check_model` passes every model of ours, and finds what is wrong with one that breaks a rule."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import fivo
from fivo.models import SequenceModel, check_model
from tests.models.cases import CASES, FAMILIES, linear_gaussian
from tests.models.rule_breakers import Clairvoyant, Curious, Foreseeing, Forgetful, Peeking, Sealed, Widening
from tests.sentences import assert_one_sentence

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("case", FAMILIES, ids=str)
def test_our_models_pass(case):
    """Every proposal of theirs goes through the same checks in `test_protocol.py`."""
    report = check_model(case.build(np.float64), case.sequences(6)[0])
    assert report.ok, str(report)
    assert len(report.findings) == len(str(report).splitlines()) == 7


SHAPES = "encode returns one entry per step, and the state keeps its shape"
FRAMES = "one frame at a time agrees with encode"
FUTURE = "nothing looks into the future"
GRADIENT = "the gradient is right"


@pytest.mark.parametrize(
    ("kind", "dtype", "broken"),
    [
        (Peeking, np.float64, FUTURE),
        (Foreseeing, np.float64, FUTURE),
        (Clairvoyant, np.float64, FUTURE),
        (Forgetful, np.float64, FRAMES),
        (Sealed, np.float64, GRADIENT),
        (Widening, np.float32, SHAPES),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_rule_breaker_is_found(kind, dtype, broken):
    report = check_model(kind(**linear_gaussian(dtype).parameters._asdict()), CASES[0].sequences(5)[0])
    assert not report.ok
    finding = next(finding for finding in report.findings if finding.name == broken)
    assert not finding.ok
    assert_one_sentence(finding.detail)
    assert f"FAIL  {broken}: " in str(report)


def test_a_model_that_is_fed_back_what_it_saw_keeps_the_rules():
    report = check_model(Curious(**linear_gaussian(np.float64).parameters._asdict()), CASES[0].sequences(5)[0])
    assert report.ok, str(report)


class Leaky(SequenceModel):
    """It scores a missing frame with what stands in its place."""

    scale: jnp.ndarray

    def initial_state(self, context):
        return jnp.zeros(1)

    def prior(self, state, context):
        return dist.Normal(0.5 * state, self.scale)

    def proposal(self, state, evidence, prior):
        return dist.Normal(prior.loc + evidence[None], prior.scale)

    def encode(self, sequence):
        return None, jnp.full(len(sequence.observations), jnp.sum(sequence.observations)), None

    def encode_next(self, memory, x, mask, inputs):
        return jnp.sum(x), None, memory

    def emission(self, state, latent, context):
        return dist.Normal(latent, 1.0)


def test_what_a_users_model_raises_is_reported_and_not_raised():
    class Broken(Leaky):
        def emission(self, state, latent, context):
            return self.nothing

    report = check_model(Broken(jnp.ones(())), np.ones((3, 1)))
    assert not report.ok
    assert "AttributeError" in str(report)
    assert "\n" not in report.findings[0].detail


def test_a_sum_over_all_frames_is_no_one_frame_form():
    """Evidence of the whole sequence in a model that says it is causal."""
    report = check_model(Leaky(jnp.ones(())), np.ones((3, 1)))
    failed = {finding.name for finding in report.findings if not finding.ok}
    assert failed == {FRAMES, FUTURE}


@pytest.mark.parametrize("example", [np.zeros((0, 2)), None, "jsb"])
def test_examples_that_are_none(example):
    with pytest.raises(fivo.InputError) as refusal:
        check_model(linear_gaussian(np.float64), example)
    assert_one_sentence(refusal.value)


def test_in_single_precision_the_slope_is_not_checked_and_said_so():
    report = check_model(linear_gaussian(np.float32), CASES[0].sequences(4)[0].astype(np.float32))
    assert report.ok, str(report)
    assert "double precision" in str(report)
