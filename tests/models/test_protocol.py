"""Every model through every check, and a rule-breaker for each rule."""

import jax
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
    """The scale of z_t grows with x_t."""

    def encode(self, observations, mask, length):
        past, full = super().encode(observations, mask, length)
        stretch = 1 + jnp.concatenate([observations[:, 0] ** 2, jnp.zeros((1,))])
        return jax.tree.map(lambda leaf: leaf * stretch.reshape(-1, 1, 1), past), full


class Forgetful(LinearGaussian):
    """One frame at a time it never leaves the first step."""

    def encode_next(self, memory, x, mask):
        full, _, _ = super().encode_next(memory, x, mask)
        return full, *self.initial_memory()


class Sealed(LinearGaussian):
    """Its parameters get no gradient."""

    def advance(self, state, latent, past):
        return lax.stop_gradient(super().advance(state, latent, past))


class Widening(LinearGaussian):
    """Always goes on in double precision."""

    def advance(self, state, latent, past):
        return super().advance(state, latent, past).astype(jnp.float64)


class Babbling(LinearGaussian):
    """Refuses in two sentences."""

    def encode(self, observations, mask, length):
        raise InputError("These frames have 6 entries. That is wrong.")


RULE_BREAKERS = [
    (Peeking, protocol.check_causality),
    (Forgetful, protocol.check_encode_agrees_with_encode_next),
    (Sealed, protocol.check_transformations),
    (Widening, protocol.check_float_types),
    (Babbling, protocol.check_bad_input),
]


@pytest.mark.parametrize(("kind", "check"), RULE_BREAKERS, ids=lambda value: value.__name__)
def test_the_checks_can_fail(kind, check):
    def build(dtype):
        return kind(**linear_gaussian(dtype).parameters._asdict())

    with pytest.raises((AssertionError, TypeError, pytest.fail.Exception)):
        check(Case(kind.__name__, build, CASES[0].draw))
