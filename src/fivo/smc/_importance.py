"""The filter without resampling: importance sampling of whole trajectories.

No weight decides what happens next, so the loop over time only moves states; emissions, scores and weights follow it,
for all steps at once. A single particle, which resampling replaces by itself, goes the same way.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from fivo.resampling import Criterion
from fivo.smc._rules import Proposed
from fivo.smc._step import StepInfo
from fivo.weights import effective_sample_size, normalize

MAX_WEIGHTS = 2**24
"""The most weights, over all steps, sequences and particles, that are stored to be computed after the loop."""


def weigh_trajectories(
    criterion: Criterion,
    start: Float[Array, "batch particle"],
    made: Proposed,
    active: Bool[Array, "time batch"],
) -> StepInfo:
    """Lines 8-11 of Algorithm 1 for all steps [time, batch, ...] at once, for particles that are never exchanged."""
    log_weights, log_increments = trajectory_weights(start, made.log_likelihood + made.log_ratio, active)
    steps = jnp.arange(active.shape[0], dtype=jnp.int32)
    return StepInfo(
        log_increment=log_increments,
        ess=jnp.where(jnp.isneginf(log_increments), 0, effective_sample_size(log_weights)),
        resampled=active & jax.vmap(jax.vmap(criterion, in_axes=(0, None)))(log_weights, steps),
        kl=-jnp.mean(made.log_ratio, axis=-1),
        log_weights=log_weights,
        ancestors=jnp.broadcast_to(jnp.arange(log_weights.shape[-1], dtype=jnp.int32), log_weights.shape),
        latents=made.latent,
        log_proposal=made.log_proposal,
        log_twist=made.log_twist,
    )


def trajectory_weights(
    start: Float[Array, "batch particle"],
    log_alpha: Float[Array, "time batch particle"],
    active: Bool[Array, "time batch"],
) -> tuple[Float[Array, "time batch particle"], Float[Array, "time batch"]]:
    """Normalised log-weights after every step and log p̂_t, from the incremental weights of all steps.

    Each step is first measured from its best particle: what is summed over time then stays of the size of the
    differences between particles, and long sequences lose no digits.
    """
    best = lax.stop_gradient(jnp.max(log_alpha, axis=-1))
    best = jnp.where(jnp.isneginf(best), 0, best)
    summed = start[None] + jnp.cumsum(log_alpha - best[..., None], axis=0)
    log_weights, log_total = normalize(summed)
    before = jnp.concatenate([jnp.zeros_like(log_total[:1]), log_total[:-1]])
    before = jnp.where(jnp.isneginf(before), 0, before)
    return log_weights, jnp.where(active, best + log_total - before, 0)


def without_state(made: Proposed) -> tuple[PyTree, Proposed]:
    """(h_{t+1}, what is kept of the step)."""
    return made.state, made._replace(state=None)
