"""The importance weighted auto-encoder bound (Burda, Grosse and Salakhutdinov 2015)."""

import equinox as eqx
from jaxtyping import Array, Key

from fivo.batch import Batch
from fivo.bounds.fivo import FIVO
from fivo.bounds.result import BoundResult
from fivo.gradients import Gradient, Pathwise, get_gradient
from fivo.models.contract import SequenceModel
from fivo.resampling import Never
from fivo.smc.step import check_particles


class IWAE(eqx.Module):
    """E[log of N averaged importance weights]: FIVO that never resamples."""

    num_particles: int = eqx.field(static=True)
    gradient: Gradient = eqx.field(converter=get_gradient, default=Pathwise(), kw_only=True)

    def __check_init__(self) -> None:
        check_particles(self.num_particles)
        self._fivo  # noqa: B018 - refuses gradients that mean nothing here

    @property
    def _fivo(self) -> FIVO:
        return FIVO(self.num_particles, criterion=Never(), gradient=self.gradient)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        return self._fivo(model, batch, key=key)
