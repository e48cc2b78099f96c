"""The bound of the marginal particle filter (Lai, Domke and Sheldon 2022)."""

from fivo.bounds._fivo import FIVO
from fivo.errors import InputError
from fivo.gradients import Gradient, Pathwise, ResamplingScore
from fivo.resampling import AnyScheme
from fivo.smc import MarginalParticleFilter


class MarginalFIVO(FIVO):
    """E[log p̂_N] of a `MarginalParticleFilter`, for models whose latents are a Markov chain.

    Args:
        num_particles: N, at most 2,048.
        resampling: how the components of the mixture are drawn; multinomial by default.
        gradient: what `jax.grad` of the bound follows: "pathwise", which drops the choice of components, or
            "resampling-score", which scores it and so is the whole gradient.
    """

    def __init__(
        self,
        num_particles: int,
        resampling: str | AnyScheme = "multinomial",
        *,
        gradient: str | Gradient = "pathwise",
    ) -> None:
        super().__init__(filter=MarginalParticleFilter(num_particles, resampling), gradient=gradient)
        if type(self.gradient) not in (Pathwise, ResamplingScore):
            raise InputError(
                f"a marginal filter's gradient must be 'pathwise' or 'resampling-score', got {self.gradient.name!r}."
            )
