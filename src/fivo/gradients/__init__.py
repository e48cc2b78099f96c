"""Gradient estimators: which terms of ∇E[log p̂] a bound's derivative follows (Section 3.1 and appendix of the paper).

A gradient changes no value of a bound, only what `jax.grad` of it is. `docs/gradients.md` says what each one estimates.
"""

from fivo.errors import InputError
from fivo.gradients.baselines import Baseline, MovingAverage, NoBaseline, OtherFilters, OtherParticles, get_baseline
from fivo.gradients.estimator import Estimate, Gradient
from fivo.gradients.landing import DoublyReparameterised, StickingTheLanding
from fivo.gradients.pathwise import Pathwise
from fivo.gradients.score import LatentScore, ResamplingScore, Score
from fivo.gradients.stop_gradient import StopGradientResampling

GRADIENTS: dict[str, type[Gradient]] = {
    "pathwise": Pathwise,
    "resampling-score": ResamplingScore,
    "latent-score": LatentScore,
    "score": Score,
    "doubly-reparameterised": DoublyReparameterised,
    "sticking-the-landing": StickingTheLanding,
    "stop-gradient": StopGradientResampling,
}
SCORES = ("resampling-score", "latent-score", "score")
"""Those that take a baseline."""


def get_gradient(gradient: str | Gradient, baseline: str | Baseline = "none") -> Gradient:
    """The gradient of a name, with a baseline where it has a score term."""
    if isinstance(gradient, Gradient):
        return gradient
    if gradient not in GRADIENTS:
        raise InputError(f"got gradient={gradient!r} where one of {', '.join(GRADIENTS)} was expected.")
    chosen = get_baseline(baseline)
    if gradient in SCORES:
        return GRADIENTS[gradient](baseline=chosen)  # pyright: ignore[reportCallIssue]
    if not isinstance(chosen, NoBaseline):
        raise InputError(
            f"got baseline={baseline!r} with the {gradient} gradient, which has no score term to take one from; drop "
            f"it, or choose {', '.join(SCORES)}."
        )
    return GRADIENTS[gradient]()


__all__ = [
    "GRADIENTS",
    "SCORES",
    "Baseline",
    "DoublyReparameterised",
    "Estimate",
    "Gradient",
    "LatentScore",
    "MovingAverage",
    "NoBaseline",
    "OtherFilters",
    "OtherParticles",
    "Pathwise",
    "ResamplingScore",
    "Score",
    "StickingTheLanding",
    "StopGradientResampling",
    "get_baseline",
    "get_gradient",
]
