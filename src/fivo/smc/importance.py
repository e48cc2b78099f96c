"""The filter without resampling: importance sampling of whole trajectories.

No weight decides what happens next, so the loop over time only moves states; emissions, scores and weights follow it,
for all steps at once. A single particle, which resampling replaces by itself, goes the same way.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from fivo._fuse import scan
from fivo.resampling import Criterion
from fivo.smc.step import Particles, Proposed, StepInfo, StepInputs
from fivo.weights import effective_sample_size, normalize

MAX_WEIGHTS = 2**24
"""The most weights, over all steps, sequences and particles, that are stored to be computed after the loop."""


def importance_filter(
    propose: Callable[[PyTree, StepInputs], Proposed],
    start: Particles,
    criterion: Criterion,
    inputs: StepInputs,
    active: Bool[Array, "time batch"],
) -> tuple[Particles, StepInfo]:
    """(final particles, what a person may want to see of all steps), [time, batch, ...]."""

    def body(state: PyTree, inputs: StepInputs) -> tuple[PyTree, tuple]:
        latents, log_alpha, log_ratio, state, log_proposal = propose(state, inputs)
        return state, (latents, log_alpha, log_ratio, log_proposal)

    state, (latents, log_alpha, log_ratio, log_proposal) = scan(body, start.state, inputs)
    log_weights, log_increments = trajectory_weights(start.log_weights, log_alpha, active)
    num_particles = log_weights.shape[-1]
    info = StepInfo(
        log_increment=log_increments,
        ess=jnp.where(jnp.isneginf(log_increments), 0, effective_sample_size(log_weights)),
        resampled=active & jax.vmap(jax.vmap(criterion, in_axes=(0, None)))(log_weights, inputs.step),
        kl=-jnp.mean(log_ratio, axis=-1),
        log_weights=log_weights,
        ancestors=jnp.broadcast_to(jnp.arange(num_particles, dtype=jnp.int32), log_weights.shape),
        latents=latents,
        log_proposal=log_proposal,
    )
    return Particles(state, log_weights[-1]), info


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
