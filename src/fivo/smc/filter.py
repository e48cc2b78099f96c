"""The particle filter over a padded batch: one scan over time, particles inside."""

from collections.abc import Collection
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from fivo._fuse import flatten_products, scan, straight
from fivo.batch import Batch
from fivo.errors import InputError
from fivo.models.contract import SequenceModel, past_pairs
from fivo.models.scoring import sample
from fivo.resampling import Always, CarryingScheme, Criterion, ESSBelow, Never, Scheme, checked_scheme
from fivo.resampling.inverse_cdf import SMALL
from fivo.smc.importance import MAX_WEIGHTS, importance_filter
from fivo.smc.step import (
    EVERY_PATH,
    Particles,
    Paths,
    StepInfo,
    StepInputs,
    check_particles,
    initial_particles,
    propose,
    resample,
    weigh,
    weight_dtype,
)

Record = Literal["log_weights", "ancestors", "latents"]


class FilterResult(eqx.Module):
    """What the filter found; weights, ancestors and latents only if they were kept.

    Weights are normalised and those before resampling; resampling decided at step t acts before step t + 1.
    Behind a sequence's end increments and `kl` are zero and nothing is resampled.
    """

    log_increments: Float[Array, "batch time"]
    ess: Float[Array, "batch time"]
    resampled: Bool[Array, "batch time"]
    kl: Float[Array, "batch time"]
    log_weights: Float[Array, "batch time particle"] | None
    ancestors: Int[Array, "batch time particle"] | None
    latents: PyTree
    particles: Particles
    """The final particles: the states after the last step and their log-weights, resampling done."""
    log_proposal: Float[Array, "batch time particle"] | None = None
    """log q_t(z_t), where `paths` asked for it."""
    discrete: bool = eqx.field(static=True, default=False)
    """Whether the latents are discrete, so that no derivative passes through their draws."""

    @classmethod
    def of(cls, particles: Particles, info: StepInfo, *, discrete: bool = False) -> "FilterResult":
        """The result of a run's final particles and its steps, [batch, time, ...]."""
        return cls(
            log_increments=info.log_increment,
            ess=info.ess,
            resampled=info.resampled,
            kl=info.kl,
            log_weights=info.log_weights,
            ancestors=info.ancestors,
            latents=info.latents,
            particles=particles,
            log_proposal=info.log_proposal,
            discrete=discrete,
        )

    @property
    def log_evidence(self) -> Float[Array, " batch"]:
        """log p̂_N(x_1:T)."""
        return jnp.sum(self.log_increments, axis=1)

    @property
    def alive(self) -> Bool[Array, " batch"]:
        """False where at some step every particle had weight zero; the evidence estimate is then -inf."""
        return ~jnp.any(jnp.isneginf(self.log_increments), axis=1)


def kept(record: Array | None) -> Array:
    """A per-particle record that is needed."""
    if record is None:
        raise InputError("a record of the filter is needed that was not kept; name it in keep=.")
    return record


def filter(
    model: SequenceModel,
    batch: Batch,
    *,
    num_particles: int,
    key: Key[Array, "*batch"],
    resampling: str | Scheme | CarryingScheme = "multinomial",
    criterion: Criterion = ESSBelow(0.5),
    keep: Collection[Record] = ("log_weights", "ancestors"),
    paths: Paths = EVERY_PATH,
) -> FilterResult:
    """Run Algorithm 1 on every sequence of a batch.

    `key` is one key, split per sequence, or one key per sequence. `keep` names the per-particle records to store.
    `paths` changes nothing but derivatives: bounds choose it by their `gradient`.
    """
    check_particles(num_particles)
    unknown = set(keep) - {"log_weights", "ancestors", "latents"}
    if unknown:
        raise InputError(f"got keep={sorted(unknown)} where log_weights, ancestors or latents were expected.")
    keys = straight(sequence_keys(key, batch.lengths.shape[0]))
    scheme = checked_scheme(resampling, num_particles)
    return _filter(model, batch, keys, scheme, criterion, num_particles, frozenset(keep), paths)


def sequence_keys(key: Key[Array, "*batch"], num_sequences: int) -> Key[Array, " sequence"]:
    """One key per sequence, from one key or from as many."""
    kind = getattr(key, "dtype", None)
    if kind == jnp.uint32:
        key = jax.random.wrap_key_data(key)
    elif kind is None or not jnp.issubdtype(kind, jax.dtypes.prng_key):
        raise InputError(f"got key={key!r} where a random key was expected; make one with jax.random.key.")
    if key.ndim == 0:
        return jax.random.split(key, num_sequences)
    if key.shape != (num_sequences,):
        raise InputError(
            f"got keys of shape {key.shape} where one key or {num_sequences} keys (one per sequence) were expected."
        )
    return key


@eqx.filter_jit
def _filter(
    model: SequenceModel,
    batch: Batch,
    keys: Key[Array, " batch"],
    scheme: Scheme | CarryingScheme,
    criterion: Criterion,
    num_particles: int,
    keep: frozenset[str],
    paths: Paths,
) -> FilterResult:
    observations, mask = batch.observations, batch.mask
    if jnp.issubdtype(observations.dtype, jnp.floating):
        observations = observations.astype(weight_dtype(model))
    steps = jnp.arange(observations.shape[1], dtype=jnp.int32)
    active = steps[:, None] < batch.lengths[None, :]
    # A NaN behind the end would not reach the estimate, but it would reach its gradient.
    seen = active.T[..., None] if mask is None else mask & active.T[..., None]
    observations = jnp.where(seen, observations, 0)
    mask_axis = None if mask is None else 0
    encode = flatten_products(jax.vmap(model.encode, in_axes=(0, mask_axis, 0), out_axes=1))
    past, full = encode(observations, mask, batch.lengths)
    start = jax.vmap(
        lambda first: initial_particles(model, first, num_particles),
        axis_size=batch.lengths.shape[0],  # for models without a past
    )(jax.tree.map(lambda leaf: leaf[0], past))
    start = Particles(paths.begin(start.state), start.log_weights)

    inputs = StepInputs(
        step=steps,
        key=jax.vmap(lambda t: jax.vmap(lambda k: jax.random.fold_in(k, t))(keys))(steps),
        active=active,
        x=jnp.swapaxes(observations, 0, 1),
        mask=None if mask is None else jnp.swapaxes(mask, 0, 1),
        past=past_pairs(past)[0],
        full=full,
        past_next=past_pairs(past)[1],
        path_weights=None if paths.weights is None else jnp.swapaxes(paths.weights, 0, 1),
    )
    over_batch = StepInputs(None, 0, 0, 0, mask_axis, 0, 0, 0, 0)  # pyright: ignore[reportArgumentType]
    never = isinstance(criterion, Never) or num_particles == 1  # one particle is its own only ancestor
    if never and active.size * num_particles <= MAX_WEIGHTS:
        propose_all = jax.vmap(lambda h, i: propose(model, h, num_particles, i, paths), in_axes=(0, over_batch))
        particles, info = importance_filter(propose_all, start, criterion, inputs, active)
        info = without(info, keep)
    else:
        weigh_all = jax.vmap(lambda p, i: weigh(model, criterion, p, i, paths), in_axes=(0, over_batch))

        def body(particles: Particles, inputs: StepInputs):
            particles, info = weigh_all(particles, inputs)
            particles, ancestors = resample_batch(scheme, criterion, inputs.key, info, particles, paths)
            return particles, without(eqx.tree_at(lambda i: i.ancestors, info, ancestors), keep)

        particles, info = scan(body, start, inputs)
    info = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), info)
    return FilterResult.of(particles, info, discrete=_discrete_latents(model, past, full))


def resample_batch(
    scheme: Scheme | CarryingScheme,
    criterion: Criterion,
    keys: Key[Array, " batch"],
    info: StepInfo,
    particles: Particles,
    paths: Paths,
) -> tuple[Particles, Int[Array, "batch particle"]]:
    """Resample the sequences that are due; steps where none is skip the work where it is worth skipping."""

    def resample_due(particles: Particles) -> tuple[Particles, Int[Array, "batch particle"]]:
        return jax.vmap(lambda k, due, p: resample(scheme, k, due, p, paths))(keys, info.resampled, particles)

    if isinstance(criterion, Always) or particles.log_weights.shape[-1] <= SMALL:
        return resample_due(particles)
    return lax.cond(jnp.any(info.resampled), resample_due, lambda particles: (particles, info.ancestors), particles)


def _discrete_latents(model: SequenceModel, past: PyTree, full: PyTree) -> bool:
    """Whether any part of the proposal's draws is discrete; nothing is computed for it."""
    declared = []

    def look(past: PyTree, full: PyTree) -> PyTree:
        state = model.initial_state(past)
        proposal = model.proposal(state, full, model.prior(state, past))
        declared.append(proposal.support is not None and proposal.is_discrete)
        return sample(proposal, jax.random.key(0), weight_dtype(model))

    drawn = jax.eval_shape(look, *jax.tree.map(lambda leaf: leaf[0, 0], (past, full)))
    # A distribution may not declare its support, or draw several variables of which only some are discrete.
    return declared[0] or any(not jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(drawn))


def without(info: StepInfo, keep: frozenset[str]) -> StepInfo:
    """The records of a step that were asked for."""
    dropped = sorted({"log_weights", "ancestors", "latents"} - keep)
    return eqx.tree_at(lambda i: [getattr(i, name) for name in dropped], info, replace=[None] * len(dropped))
