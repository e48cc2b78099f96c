"""The filtering variational objective (Definition 2 of the paper)."""

import equinox as eqx
from jaxtyping import Array, Key

from fivo.batch import Batch
from fivo.bounds.result import BoundResult, bound_info
from fivo.gradients import Gradient, Pathwise, get_gradient
from fivo.gradients.estimator import Setting
from fivo.models.contract import SequenceModel
from fivo.resampling import CarryingScheme, Criterion, ESSBelow, Scheme, checked_scheme, get_scheme
from fivo.smc.step import check_particles


class FIVO(eqx.Module):
    """E[log p̂_N] of a particle filter; resampling when ESS <= N/2 by default.

    `jax.grad` of it is what `gradient` says, by default the paper's estimator ∇ log p̂_N with reparameterised latents,
    resampling terms dropped.
    """

    num_particles: int = eqx.field(static=True)
    resampling: str | Scheme | CarryingScheme = eqx.field(static=True, default="multinomial")
    criterion: Criterion = ESSBelow(0.5)
    gradient: Gradient = eqx.field(converter=get_gradient, default=Pathwise(), kw_only=True)

    def __check_init__(self) -> None:
        check_particles(self.num_particles)
        checked_scheme(self.resampling, self.num_particles)
        self.gradient.check(self.setting)

    @property
    def setting(self) -> Setting:
        """The filter behind the bound."""
        return Setting(self.num_particles, get_scheme(self.resampling), self.criterion)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        log_evidence, result = self.gradient(self.setting, model, batch, key)
        return BoundResult(log_evidence, bound_info(result))
