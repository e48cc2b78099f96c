"""The particle filter with its particles over devices, for more of them than one device holds.

Every device proposes and weights its own particles; four numbers per device are exchanged for log p̂_t and the ESS.
Two ways to resample, both unbiased for p(x) and O(N):

- exact: every device draws the ancestors of its own slots, sorted, with the key that one device would have; particles
  are passed around the ring of devices in whole blocks, and each device picks those that it continues.
- islands: each device resamples its own particles by their weights among themselves, and keeps the island's total
  weight; where the islands' weights differ too much, whole islands are resampled by weight (Vergé, Dubarry, Del Moral
  and Moulines 2015). Weights are never collected, and particles move only then.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from fivo._fuse import particle_keys
from fivo.batch import Batch
from fivo.distributions import weight_dtype
from fivo.errors import InputError
from fivo.models import Frame, SequenceModel, inspect_step, over_time, read_batch, start_state
from fivo.resampling import ESSBelow, draw_ancestors, draw_own_ancestors, systematic
from fivo.smc._result import FilterResult
from fivo.smc._rules import Rules
from fivo.smc._step import Particles, StepInfo, only_active

if TYPE_CHECKING:
    from fivo.smc._filter import ParticleFilter

DIFFERENT = 0.5
"""Islands are resampled when the effective number of them is at most this share of their number."""
RECORDED = ("log_weights", "ancestors", "latents")


class Now(NamedTuple):
    """What step t of a sequence reads besides the particles."""

    step: Int[Array, ""]
    key: Key[Array, ""]
    active: Bool[Array, ""]
    """Whether the sequence has not ended."""
    frame: Frame


class Totals(NamedTuple):
    """What one exchange of numbers tells every device."""

    log_total: Float[Array, ""]
    ess: Float[Array, ""]
    kl: Float[Array, ""]
    log_islands: Float[Array, " device"]
    """log of the weight of each device's particles together, of a total of one."""
    ess_islands: Float[Array, " device"]
    """The ESS of each device's particles by their weights among themselves."""


@eqx.filter_jit
def run_over_devices(
    pf: "ParticleFilter", model: SequenceModel, batch: Batch, keys: Key[Array, " batch"], keep: frozenset[str]
) -> FilterResult:
    """As the filter on one device; sequences are filtered one after the other."""
    axis, _ = _ring(pf)
    reading = read_batch(model, batch)
    kinds = inspect_step(model, reading.frames, num_axes=2)
    arrays, static = eqx.partition((pf, model), eqx.is_array)

    def local(arrays: PyTree, frames: PyTree, lengths: Array, keys: Array) -> Any:
        pf, model = eqx.combine(arrays, static)
        return lax.map(lambda now: _one(pf, model, now[0], now[1], now[2], keep), (frames, lengths, keys))

    particles, numbers, records = jax.shard_map(
        local,
        mesh=pf.mesh,
        in_specs=P(),
        out_specs=(P(None, axis), P(), P(None, None, axis)),
        check_vma=False,
    )(arrays, reading.frames, batch.lengths, keys)
    info = StepInfo(**numbers, **{name: records.get(name) for name in RECORDED})
    return FilterResult.of(Particles(*particles), info, discrete=kinds.discrete)


def _one(
    pf: "ParticleFilter", model: SequenceModel, frames: PyTree, length: Array, key: Key[Array, ""], keep: frozenset[str]
) -> tuple[tuple, dict, dict]:
    """One sequence, as each device sees it."""
    axis, devices = _ring(pf)
    count = pf.num_particles // devices
    first_particle = lax.axis_index(axis).astype(jnp.int32) * count
    own = first_particle + jnp.arange(count, dtype=jnp.int32)
    dtype, rules = weight_dtype(model), Rules()
    state = start_state(model, jax.tree.map(lambda leaf: leaf[0], frames.context))
    state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), state)
    start = Particles(state, jnp.full((count,), -jnp.log(jnp.asarray(pf.num_particles, dtype)), dtype))
    steps = jnp.arange(frames.x.shape[0], dtype=jnp.int32)
    step_keys = jax.vmap(lambda t: jax.random.fold_in(key, t))(steps)
    inputs = Now(steps, step_keys, steps < length, frames)

    def step(particles: Particles, now: Now, first: bool) -> tuple[Particles, tuple[dict, dict]]:
        propose_key, resample_key = jax.random.split(now.key)
        particle = particle_keys(propose_key, count, first_particle, pf.num_particles)
        one = lambda k, h: rules.propose(model, k, h, now.frame, None, first)  # noqa: E731
        made = jax.vmap(one)(particle, particles.state)
        made = only_active(now.active, made, particles.state)
        joint = particles.log_weights + (made.log_likelihood + made.log_ratio)
        totals = _totals(joint, made.log_ratio, axis, devices)
        dead = jnp.isneginf(totals.log_total)
        normalized = jnp.where(dead, start.log_weights, joint - jnp.where(dead, 0, totals.log_total))
        weighted = Particles(made.state, jnp.where(now.active, normalized, particles.log_weights))
        exchange = _exact if pf.exchange == "exact" else _islands
        after, ancestors, resampled = exchange(pf, resample_key, weighted, totals, now, own)
        numbers = {
            "log_increment": jnp.where(now.active, totals.log_total, 0),
            "ess": jnp.where(dead, 0, totals.ess),
            "resampled": resampled,
            "kl": totals.kl,
        }
        records = {"log_weights": weighted.log_weights, "ancestors": ancestors, "latents": made.latent}
        return after, (numbers, {name: records[name] for name in keep})

    particles, (numbers, records) = over_time(model, step, start, inputs)
    return (particles.state, particles.log_weights), numbers, records


def _ring(pf: "ParticleFilter") -> tuple[str, int]:
    """The name of the axis of devices, and how many there are."""
    if pf.mesh is None:
        raise InputError("a filter over devices must have a mesh, got None.")
    return pf.mesh.axis_names[0], pf.mesh.size


def _totals(joint: Float[Array, " particle"], log_ratio: Float[Array, " particle"], axis: str, devices: int) -> Totals:
    """log Σ_i exp, the ESS, the average of -log_ratio and the shares of the devices, by one exchange.

    Where all weights are zero, they count as equal.
    """
    count = joint.shape[0]
    top = lax.stop_gradient(jnp.max(joint))
    top = jnp.where(jnp.isneginf(top), 0, top)
    shifted = jnp.exp(joint - top)
    mine = jnp.stack([top, jnp.sum(shifted), jnp.sum(shifted**2), -jnp.mean(log_ratio)])
    tops, sums, squares, kls = lax.all_gather(mine, axis, axis=1)
    some = sums > 0
    highest = jnp.max(jnp.where(some, tops, -jnp.inf))
    highest = lax.stop_gradient(jnp.where(jnp.isneginf(highest), 0, highest))
    scale = jnp.exp(jnp.minimum(tops - highest, 0))
    total = jnp.sum(sums * scale)
    alive = total > 0
    safe = jnp.where(alive, total, 1)
    shares = jnp.where(alive, sums * scale / safe, 1 / devices)
    return Totals(
        log_total=jnp.where(alive, jnp.log(safe) + highest, -jnp.inf),
        ess=jnp.where(alive, safe**2 / jnp.where(alive, jnp.sum(squares * scale**2), 1), count * devices),
        kl=jnp.mean(kls),
        log_islands=jnp.where(shares > 0, jnp.log(jnp.where(shares > 0, shares, 1)), -jnp.inf),
        ess_islands=jnp.where(some, sums**2 / jnp.where(some, squares, 1), count),
    )


def _due(
    pf: "ParticleFilter", ess: Float[Array, ""], count: int, log_weights: Callable[[], Array], now: Now
) -> Bool[Array, ""]:
    """Whether `count` particles are resampled by the criterion, which seldom has to look at the weights themselves."""
    if isinstance(pf.criterion, ESSBelow):
        rounding = 32 * jnp.finfo(ess.dtype).eps  # as the criterion has it
        due = ess <= pf.criterion.fraction * count * (1 + rounding)
    else:
        due = pf.criterion(log_weights(), now.step)
    return due & now.active


def _exact(
    pf: "ParticleFilter", key: Key[Array, ""], particles: Particles, totals: Totals, now: Now, own: Array
) -> tuple[Particles, Int[Array, " particle"], Bool[Array, ""]]:
    """All particles drawn by all weights, as on one device."""
    (axis, devices), count = _ring(pf), own.shape[0]
    everyone = lambda: lax.all_gather(particles.log_weights, axis, tiled=True)  # noqa: E731
    due = _due(pf, totals.ess, pf.num_particles, everyone, now)

    def exchange(particles: Particles) -> tuple[Particles, Array]:
        weights = lax.stop_gradient(particles.log_weights)
        mine = draw_own_ancestors(pf.scheme, key, weights, axis, devices)  # pyright: ignore[reportArgumentType]
        state = _passed(pf, particles.state, mine // count, mine % count)
        uniform = jnp.full_like(particles.log_weights, -jnp.log(pf.num_particles))
        return Particles(state, uniform), mine

    particles, ancestors = lax.cond(due, exchange, lambda particles: (particles, own), particles)
    return particles, ancestors, due


def _islands(
    pf: "ParticleFilter", key: Key[Array, ""], particles: Particles, totals: Totals, now: Now, own: Array
) -> tuple[Particles, Int[Array, " particle"], Bool[Array, ""]]:
    """Particles drawn by the weights on their own device, then whole islands by their weights where these differ."""
    (axis, devices), count = _ring(pf), own.shape[0]
    here = lax.axis_index(axis)
    log_island, uniform = totals.log_islands[here], jnp.full_like(particles.log_weights, -jnp.log(count))
    dead = jnp.isneginf(log_island)
    within = jnp.where(dead, uniform, particles.log_weights - jnp.where(dead, 0, log_island))
    local_key, island_key = jax.random.split(key)
    local_due = _due(pf, totals.ess_islands[here], count, lambda: within, now)

    def resample(state: PyTree) -> tuple[PyTree, Array, Array]:
        mine = jax.random.fold_in(local_key, here)
        drawn = draw_ancestors(pf.scheme, mine, lax.stop_gradient(within), count)  # pyright: ignore[reportArgumentType]
        return jax.tree.map(lambda leaf: leaf[drawn], state), uniform, own[drawn]

    state, within, ancestors = lax.cond(local_due, resample, lambda state: (state, within, own), particles.state)
    effective = 1 / jnp.sum(jnp.exp(2 * totals.log_islands))
    differ = (effective <= DIFFERENT * devices) & now.active

    def exchange(whole: tuple) -> tuple[PyTree, Array, Array]:
        drawn = systematic(island_key, lax.stop_gradient(totals.log_islands), devices)
        home = jnp.broadcast_to(drawn[here], (count,))
        state, within, ancestors = _passed(pf, whole, home, jnp.arange(count))
        return state, within - jnp.log(devices), ancestors

    stay = lambda whole: (whole[0], whole[1] + log_island, whole[2])  # noqa: E731
    state, log_weights, ancestors = lax.cond(differ, exchange, stay, (state, within, ancestors))
    somewhere = lax.pmax(local_due.astype(jnp.int32), axis) > 0
    return Particles(state, log_weights), ancestors, somewhere | differ


def _passed(pf: "ParticleFilter", blocks: PyTree, home: Int[Array, " particle"], place: Int[Array, " particle"]) -> Any:
    """What is at given places of other devices' blocks, which go once around the ring of devices."""
    axis, devices = _ring(pf)
    around = [(device, (device + 1) % devices) for device in range(devices)]

    def pick(source: Array, block: PyTree, found: PyTree) -> PyTree:
        here = home == source

        def one(new: Array, old: Array) -> Array:
            return jnp.where(here.reshape(-1, *[1] * (new.ndim - 1)), new[place], old)

        return jax.tree.map(one, block, found)

    def turn(carry: tuple[PyTree, PyTree], passed: Array) -> tuple[tuple[PyTree, PyTree], None]:
        block, found = carry
        block = jax.tree.map(lambda leaf: lax.ppermute(leaf, axis, around), block)
        return (block, pick((lax.axis_index(axis) - passed) % devices, block, found)), None

    found = pick(lax.axis_index(axis), blocks, blocks)
    return lax.scan(turn, (blocks, found), jnp.arange(1, devices))[0][1]
