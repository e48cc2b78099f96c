"""Resampling: a scheme says how ancestors are drawn, a criterion says when. Any criterion goes with any scheme.

A scheme is a pure function of (key, log_weights, N) with expected offspring counts N w; it takes O(N log N) time and
O(N) memory. A function of your own can be passed wherever a name can. Differentiable schemes (`Soft`, `Relaxed`,
`Transport`) move the particles themselves.
"""

from fivo.resampling._criteria import Always, Criterion, ESSBelow, Every, Never, Schedule, check_criterion
from fivo.resampling._differentiable import DifferentiableScheme, Resampled
from fivo.resampling._inverse_cdf import SMALL
from fivo.resampling._multinomial import multinomial
from fivo.resampling._over_devices import draw_own_ancestors
from fivo.resampling._relaxed import Relaxed
from fivo.resampling._residual import residual
from fivo.resampling._schemes import (
    DIFFERENTIABLE,
    SCHEMES,
    AnyScheme,
    Scheme,
    bound_lost,
    checked_scheme,
    draw_ancestors,
    get_conditional_scheme,
    get_scheme,
    law_of,
)
from fivo.resampling._soft import Soft
from fivo.resampling._stop_gradient import StopGradient
from fivo.resampling._stratified import stratified
from fivo.resampling._systematic import systematic
from fivo.resampling._transport import Transport

__all__ = [
    "DIFFERENTIABLE",
    "SCHEMES",
    "SMALL",
    "Always",
    "AnyScheme",
    "Criterion",
    "DifferentiableScheme",
    "ESSBelow",
    "Every",
    "Never",
    "Relaxed",
    "Resampled",
    "Schedule",
    "Scheme",
    "Soft",
    "StopGradient",
    "Transport",
    "bound_lost",
    "check_criterion",
    "checked_scheme",
    "draw_ancestors",
    "draw_own_ancestors",
    "get_conditional_scheme",
    "get_scheme",
    "law_of",
    "multinomial",
    "residual",
    "stratified",
    "systematic",
]
