"""Resampling: a scheme says how ancestors are drawn, a criterion says when. Any criterion goes with any scheme.

A scheme is a pure function of (key, log-weights, N) with expected offspring counts N w; it takes O(N log N)
time and O(N) memory. A user's own function of that form can be passed wherever a name can.
"""

from typing import Protocol, runtime_checkable

from jaxtyping import Array, Float, Int, Key

from fivo.errors import InputError
from fivo.resampling.criteria import Always, Criterion, ESSBelow, Every, Never, Schedule
from fivo.resampling.multinomial import multinomial
from fivo.resampling.residual import residual
from fivo.resampling.stratified import stratified
from fivo.resampling.systematic import systematic


@runtime_checkable
class Scheme(Protocol):
    """Draws ancestors in proportion to the weights."""

    def __call__(
        self, key: Key[Array, ""], log_weights: Float[Array, " particle"], num_draws: int
    ) -> Int[Array, " draw"]: ...


SCHEMES: dict[str, Scheme] = {
    "multinomial": multinomial,
    "stratified": stratified,
    "systematic": systematic,
    "residual": residual,
}


def get_scheme(resampling: str | Scheme) -> Scheme:
    """The scheme of a name, or the given function itself."""
    if callable(resampling):
        return resampling
    if resampling not in SCHEMES:
        raise InputError(f"got resampling={resampling!r} where one of {', '.join(SCHEMES)} or a function was expected.")
    return SCHEMES[resampling]


__all__ = [
    "SCHEMES",
    "Always",
    "Criterion",
    "ESSBelow",
    "Every",
    "Never",
    "Schedule",
    "Scheme",
    "get_scheme",
    "multinomial",
    "residual",
    "stratified",
    "systematic",
]
