"""Particle Gibbs (Andrieu, Doucet and Holenstein 2010): posterior trajectories by repeated conditional SMC."""

from typing import Any

import equinox as eqx
import jax
from jax import lax
from jaxtyping import Array, Key, PyTree

from fivo.batch import Batch, as_batch
from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.smc._conditional import conditional_filter
from fivo.smc._filter import ParticleFilter, check_filter
from fivo.smc._result import RECORDS
from fivo.smc._trajectories import draw_trajectory


def particle_gibbs(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Any,
    *,
    num_sweeps: int,
    key: Key[Array, ""],
    start: PyTree = None,
    ancestor_sampling: bool = True,
) -> PyTree:
    """Trajectories of a Markov chain whose stationary law is the posterior p(z | x).

    Args:
        pf: the filter that every sweep runs, conditionally.
        model: the model.
        batch: a `Batch`, or what can be made one. Copies of a sequence in it are independent chains.
        num_sweeps: how many trajectories to draw, one after the other.
        key: a random key.
        start: the first reference, [batch, time, ...]; by default a trajectory of the ordinary filter.
        ancestor_sampling: see `conditional_filter`.

    Returns:
        The trajectories, [sweep, batch, time, ...].
    """
    if not isinstance(num_sweeps, int) or num_sweeps < 1:
        raise InputError(f"num_sweeps must be a positive integer, got {num_sweeps!r}.")
    check_filter(pf)
    batch = as_batch(batch)
    first_key, choice_key, sweep_key = jax.random.split(key, 3)
    if start is None:
        start = draw_trajectory(pf(model, batch, key=first_key, keep=RECORDS), key=choice_key)
    return _sweeps(pf, model, batch, start, jax.random.split(sweep_key, num_sweeps), ancestor_sampling)


@eqx.filter_jit
def _sweeps(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Batch,
    start: PyTree,
    keys: Key[Array, " sweep"],
    ancestor_sampling: bool,
) -> PyTree:
    def sweep(reference: PyTree, key: Key[Array, ""]) -> tuple[PyTree, PyTree]:
        filter_key, choice_key = jax.random.split(key)
        result = conditional_filter(
            pf, model, batch, reference, key=filter_key, ancestor_sampling=ancestor_sampling, keep=RECORDS
        )
        drawn = draw_trajectory(result, key=choice_key)
        return drawn, drawn

    return lax.scan(sweep, start, keys)[1]
