"""Particle Gibbs (Andrieu, Doucet and Holenstein 2010): posterior trajectories by repeated conditional SMC."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, Key, PyTree

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.resampling import Criterion, ESSBelow, Scheme
from fivo.smc.conditional import conditional_filter
from fivo.smc.filter import FilterResult, filter, sequence_keys
from fivo.smc.trajectories import lineages

KEPT = ("log_weights", "ancestors", "latents")


def draw_trajectory(result: FilterResult, key: Key[Array, "*batch"]) -> PyTree:
    """One trajectory z_1:T per sequence, [batch, time, ...], drawn by the last weights of a filter's particles."""
    if result.latents is None or result.ancestors is None or result.log_weights is None:
        raise InputError(f"this result holds no latents, weights and ancestors; filter with keep={KEPT}.")
    keys = sequence_keys(key, result.ancestors.shape[0])
    chosen = jax.vmap(jax.random.categorical)(keys, result.log_weights[:, -1])
    index = jnp.take_along_axis(lineages(result.ancestors), chosen[:, None, None], axis=2)

    def trace(leaf: Array) -> Array:
        wide: Int[Array, "batch time ..."] = index.reshape(index.shape + (1,) * (leaf.ndim - index.ndim))
        return jnp.take_along_axis(leaf, wide, axis=2)[:, :, 0]

    return jax.tree.map(trace, result.latents)


def particle_gibbs(
    model: SequenceModel,
    batch: Batch,
    *,
    num_particles: int,
    num_sweeps: int,
    key: Key[Array, ""],
    start: PyTree = None,
    resampling: str | Scheme = "multinomial",
    criterion: Criterion = ESSBelow(0.5),
    ancestor_sampling: bool = True,
) -> PyTree:
    """Trajectories [sweep, batch, time, ...] of a Markov chain whose stationary law is the posterior p(z | x).

    It starts from a trajectory of the ordinary filter, or from `start` [batch, time, ...]. Copies of a sequence in
    the batch are independent chains.
    """
    if not isinstance(num_sweeps, int) or num_sweeps < 1:
        raise InputError(f"got num_sweeps={num_sweeps!r} where a whole number of at least 1 was expected.")
    settings = {"num_particles": num_particles, "resampling": resampling, "criterion": criterion, "keep": KEPT}
    first_key, choice_key, sweep_key = jax.random.split(key, 3)
    if start is None:
        start = draw_trajectory(filter(model, batch, key=first_key, **settings), choice_key)
    return _sweeps(model, batch, start, jax.random.split(sweep_key, num_sweeps), settings, ancestor_sampling)


@eqx.filter_jit
def _sweeps(
    model: SequenceModel,
    batch: Batch,
    start: PyTree,
    keys: Key[Array, " sweep"],
    settings: dict,
    ancestor_sampling: bool,
) -> PyTree:
    def sweep(reference: PyTree, key: Key[Array, ""]) -> tuple[PyTree, PyTree]:
        filter_key, choice_key = jax.random.split(key)
        result = conditional_filter(
            model, batch, reference, key=filter_key, ancestor_sampling=ancestor_sampling, **settings
        )
        drawn = draw_trajectory(result, choice_key)
        return drawn, drawn

    return lax.scan(sweep, start, keys)[1]
