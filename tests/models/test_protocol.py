"""Every model through every check, and a rule-breaker for each rule."""

import pytest

from fivo.errors import InputError
from tests.models import protocol
from tests.models.cases import CASES, Case, linear_gaussian
from tests.models.protocol import CHECKS
from tests.models.rule_breakers import Babbling, Clairvoyant, Foreseeing, Forgetful, Peeking, Sealed, Widening

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_protocol(case, check):
    check(case)


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
