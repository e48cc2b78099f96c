"""Gradient estimators: which terms of ∇E[log p̂] a bound's derivative follows (Section 3.1 and appendix of the paper).

A gradient changes no value of a bound, only what `jax.grad` of it is: it supplies the rules that the filter is run with
and the terms that are added to its value. `docs/gradients.md` says what each one estimates.
"""

from fivo.errors import InputError
from fivo.gradients._baselines import (
    Baseline,
    MovingAverage,
    NoBaseline,
    OtherFilters,
    OtherParticles,
    Signals,
    get_baseline,
)
from fivo.gradients._gradient import Gradient, hold, slope_only, undifferentiable
from fivo.gradients._landing import DoublyReparameterized, StickingTheLanding
from fivo.gradients._pathwise import Pathwise
from fivo.gradients._score import LatentScore, Mixed, MixedScore, ResamplingScore, Score
from fivo.gradients._stop_gradient import StopGradientResampling

GRADIENTS: dict[str, type[Gradient]] = {
    kind.name: kind
    for kind in (
        Pathwise,
        ResamplingScore,
        LatentScore,
        Score,
        Mixed,
        MixedScore,
        DoublyReparameterized,
        StickingTheLanding,
        StopGradientResampling,
    )
}
"""The gradient estimators by name."""
SCORES = tuple(name for name, kind in GRADIENTS.items() if issubclass(kind, Score))
"""Those that take a baseline."""


def get_gradient(gradient: str | Gradient, baseline: str | Baseline = "none") -> Gradient:
    """Look up a gradient estimator.

    Args:
        gradient: a name among `GRADIENTS`, or a `Gradient`, which is returned as it is.
        baseline: a name or a `Baseline`, for gradients with a score term.

    Returns:
        The gradient.
    """
    if isinstance(gradient, Gradient):
        return gradient
    if isinstance(gradient, type):
        raise InputError(f"gradient must be an instance, such as {gradient.__name__}(), got the class itself.")
    if not isinstance(gradient, str) or gradient not in GRADIENTS:
        raise InputError(f"gradient must be one of {', '.join(GRADIENTS)}, got {gradient!r:.60}.")
    chosen = get_baseline(baseline)
    if gradient in SCORES:
        return GRADIENTS[gradient](baseline=chosen)  # pyright: ignore[reportCallIssue]
    if not isinstance(chosen, NoBaseline):
        raise InputError(
            f"a baseline must come with a gradient that has a score term ({', '.join(SCORES)}), got {baseline!r:.60} "
            f"with the {gradient} gradient."
        )
    return GRADIENTS[gradient]()


__all__ = [
    "GRADIENTS",
    "SCORES",
    "Baseline",
    "DoublyReparameterized",
    "Gradient",
    "LatentScore",
    "Mixed",
    "MixedScore",
    "MovingAverage",
    "NoBaseline",
    "OtherFilters",
    "OtherParticles",
    "Pathwise",
    "ResamplingScore",
    "Score",
    "Signals",
    "StickingTheLanding",
    "StopGradientResampling",
    "get_baseline",
    "get_gradient",
    "hold",
    "slope_only",
    "undifferentiable",
]
