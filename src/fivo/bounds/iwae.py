"""The importance weighted auto-encoder bound (Burda, Grosse and Salakhutdinov 2015)."""

import equinox as eqx
from jaxtyping import Array, Key

from fivo.batch import Batch
from fivo.bounds.fivo import FIVO
from fivo.bounds.result import BoundResult
from fivo.models.contract import SequenceModel
from fivo.resampling import Never
from fivo.smc.step import check_particles


class IWAE(eqx.Module):
    """E[log of N averaged importance weights]: FIVO that never resamples."""

    num_particles: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        check_particles(self.num_particles)

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        return FIVO(self.num_particles, criterion=Never())(model, batch, key=key)
