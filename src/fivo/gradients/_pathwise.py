"""∇ log p̂ with reparameterized latents, resampling terms dropped: the paper's choice."""

from typing import ClassVar

from fivo.gradients._gradient import Gradient
from fivo.smc import ParticleFilter


class Pathwise(Gradient):
    """What is left of Eq. 5 of the paper without its sum over resampling steps.

    Unbiased without resampling. With it, biased by the terms that were dropped.
    """

    name: ClassVar[str] = "pathwise"

    def check(self, pf: ParticleFilter) -> None:
        """Goes with every filter.

        Args:
            pf: the filter.
        """
