"""Resampling: a scheme says how ancestors are drawn, a criterion says when. Any criterion goes with any scheme.

A scheme is a pure function of (key, log-weights, N) with expected offspring counts N w; it takes O(N log N)
time and O(N) memory. A user's own function of that form can be passed wherever a name can. Schemes that carry gradients
(`Soft`, `Relaxed`, `Transport`) move the particles themselves.
"""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Float, Int, Key

from fivo.errors import InputError
from fivo.resampling.carrying import Carried, CarryingScheme, draw_ancestors
from fivo.resampling.criteria import Always, Criterion, ESSBelow, Every, Never, Schedule
from fivo.resampling.laws import law_of
from fivo.resampling.multinomial import multinomial
from fivo.resampling.relaxed import Relaxed
from fivo.resampling.residual import residual
from fivo.resampling.soft import Soft
from fivo.resampling.stop_gradient import StopGradient
from fivo.resampling.stratified import stratified
from fivo.resampling.systematic import systematic
from fivo.resampling.transport import Transport


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
CARRYING: dict[str, CarryingScheme] = {"soft": Soft(), "relaxed": Relaxed(), "transport": Transport()}
"""Schemes that carry gradients, in their usual settings."""


def get_scheme(resampling: str | Scheme | CarryingScheme) -> Scheme | CarryingScheme:
    """The scheme of a name, or the given scheme itself."""
    if callable(resampling) or isinstance(resampling, CarryingScheme):
        return resampling
    known = SCHEMES | CARRYING
    if resampling not in known:
        raise InputError(f"got resampling={resampling!r} where one of {', '.join(known)} or a function was expected.")
    return known[resampling]


def checked_scheme(resampling: str | Scheme | CarryingScheme, num_particles: int) -> Scheme | CarryingScheme:
    """The scheme, unless it cannot serve so many particles."""
    scheme = get_scheme(resampling)
    if isinstance(scheme, CarryingScheme):
        scheme.check(num_particles)
    return scheme


def bound_lost(scheme: Any) -> str | None:
    """Why log p̂ with this scheme is no lower bound of log p(x); None where it is one."""
    return getattr(scheme, "loses_bound", None)


__all__ = [
    "CARRYING",
    "SCHEMES",
    "Always",
    "Carried",
    "CarryingScheme",
    "Criterion",
    "ESSBelow",
    "Every",
    "Never",
    "Relaxed",
    "Schedule",
    "Scheme",
    "Soft",
    "StopGradient",
    "Transport",
    "bound_lost",
    "checked_scheme",
    "draw_ancestors",
    "get_scheme",
    "law_of",
    "multinomial",
    "residual",
    "stratified",
    "systematic",
]
