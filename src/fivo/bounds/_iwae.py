"""The importance weighted auto-encoder bound (Burda, Grosse and Salakhutdinov 2015)."""

from fivo.bounds._fivo import FIVO
from fivo.gradients import Gradient
from fivo.resampling import Never


class IWAE(FIVO):
    """E[log of N averaged importance weights]: FIVO that never resamples.

    Args:
        num_particles: N.
        gradient: what `jax.grad` of the bound follows, by name or as a `fivo.gradients.Gradient`.
    """

    def __init__(self, num_particles: int, *, gradient: str | Gradient = "pathwise") -> None:
        super().__init__(num_particles, criterion=Never(), gradient=gradient)
