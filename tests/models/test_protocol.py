"""Every model through every check, and a rule-breaker for each rule."""

import jax.numpy as jnp
import pytest
from jax import lax

from fivo.errors import InputError
from fivo.models import LinearGaussian
from tests.models import protocol
from tests.models.cases import CASES, Case, linear_gaussian
from tests.models.protocol import CHECKS

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_protocol(case, check):
    check(case)


class Peeking(LinearGaussian):
    """The mean of z_t moves with x_t."""

    def encode(self, sequence):
        _, evidence, history = super().encode(sequence)
        return sequence.observations, evidence, history

    def prior(self, state, context):
        return super().prior(state + context[0], None)


class Foreseeing(LinearGaussian):
    """The state after step t moves with x_{t+1}."""

    def encode(self, sequence):
        context, evidence, _ = super().encode(sequence)
        return context, evidence, jnp.roll(sequence.observations, -1, axis=0)

    def advance(self, state, latent, history):
        return super().advance(state, latent, None) + history[0]


class Clairvoyant(LinearGaussian):
    """The proposal of step t reads x_{t+1} and says that it does not."""

    def encode(self, sequence):
        context, _, history = super().encode(sequence)
        return context, jnp.roll(sequence.observations, -1, axis=0), history


class Forgetful(LinearGaussian):
    """It counts the steps, but one frame at a time it never leaves the first."""

    def encode(self, sequence):
        _, evidence, history = super().encode(sequence)
        return jnp.arange(len(sequence.observations)), evidence, history

    def begin(self):
        return jnp.zeros((), int)

    def context_next(self, memory, inputs):
        return memory

    def encode_next(self, memory, x, mask, inputs):
        evidence, history, _ = super().encode_next(memory, x, mask, inputs)
        return evidence, history, self.begin()


class Sealed(LinearGaussian):
    """Its parameters get no gradient."""

    def advance(self, state, latent, history):
        return lax.stop_gradient(super().advance(state, latent, history))


class Widening(LinearGaussian):
    """Always goes on in double precision."""

    def advance(self, state, latent, history):
        return super().advance(state, latent, history).astype(jnp.float64)


class Babbling(LinearGaussian):
    """Refuses in two sentences."""

    def encode(self, sequence):
        raise InputError("These frames have 6 entries. That is wrong.")


RULE_BREAKERS = [
    (Peeking, protocol.check_causality, "context before a change of x_1"),
    (Foreseeing, protocol.check_causality, "history before a change of x_2"),
    (Clairvoyant, protocol.check_causality, "evidence before a change of x_2"),
    (Forgetful, protocol.check_encode_agrees_with_encode_next, "context_2"),
    (Sealed, protocol.check_transformations, ""),
    (Widening, protocol.check_float_types, "advance must return a state like"),
    (Babbling, protocol.check_bad_input, "That is wrong"),
]


@pytest.mark.parametrize(("kind", "check", "part"), RULE_BREAKERS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_checks_can_fail(kind, check, part):
    def build(dtype):
        return kind(**linear_gaussian(dtype).parameters._asdict())

    with pytest.raises((AssertionError, InputError, pytest.fail.Exception)) as caught:
        check(Case(kind.__name__, build, CASES[0].draw))
    assert part in str(caught.value)
