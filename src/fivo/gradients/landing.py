"""Path gradients without the proposal's own score: sticking-the-landing and doubly reparameterised.

A pathwise gradient contains Σ_i c_i ∇log q(z_i), the score of the proposal at latents held fixed, with c_i a
trajectory's normalised weight. Sticking-the-landing (Roeder, Wu and Duvenaud 2017) drops it, which is right on average
for one particle only. The doubly reparameterised gradient (Tucker, Lawson, Gu and Maddison 2019) replaces it by what it
is on average, which turns the weight c_i of the path through z_i into c_i². With resampling the trajectories are those
between two resamplings, and the weights those at the end of each.

Models share parameters between p and q, and their states depend on earlier latents; "latents held fixed" therefore
takes states of their own, which see the latents but not where these came from:

- `sampling`: the filter's own state, that the next latent is drawn from;
- `density`: what log p and log g read. Its latents count c_i times; at the start of a stretch it is the sampling state;
- `proposal`: what log q reads. Parameters and the state at the start of a stretch are hidden from derivatives.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key, PyTree

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.gradients.estimator import Estimate, Gradient, Setting, refuse_carrying, refuse_discrete
from fivo.gradients.stretches import stretch_ends
from fivo.models.contract import SequenceModel
from fivo.models.scoring import log_prob, observation_log_prob, sample, weight_dtype
from fivo.smc.filter import kept
from fivo.smc.step import Paths, Propagated, StepInputs, select


class StickingTheLanding(Gradient):
    """The pathwise gradient without the score of q: less noise near the best q; biased for N > 1."""

    def check(self, setting: Setting) -> None:
        refuse_carrying(setting, "sticking-the-landing")

    def __call__(self, setting: Setting, model: SequenceModel, batch: Batch, key: Key[Array, "*batch"]) -> Estimate:
        result = setting.run(model, batch, key, paths=Landing())
        refuse_discrete(result, "sticking-the-landing")
        return Estimate(result.log_evidence, result)


class DoublyReparameterised(Gradient):
    """The same on average as the pathwise gradient of a fixed schedule, with less noise in q. Runs the filter twice."""

    def check(self, setting: Setting) -> None:
        refuse_carrying(setting, "doubly-reparameterised")

    def __call__(self, setting: Setting, model: SequenceModel, batch: Batch, key: Key[Array, "*batch"]) -> Estimate:
        seen = setting.run(held(model), batch, key, keep=("log_weights",))
        refuse_discrete(seen, "doubly-reparameterised")
        if seen.log_weights is None:
            raise InputError("the filter kept no weights.")
        ends = stretch_ends(seen.resampled, batch.lengths)
        weights = jnp.exp(jnp.take_along_axis(seen.log_weights, ends[..., None], axis=1))
        result = setting.run(model, batch, key, paths=Landing(weights))
        return Estimate(result.log_evidence, result)


class States(NamedTuple):
    """What particles carry; without weights the density's state is the sampling one."""

    sampling: PyTree
    density: PyTree
    proposal: PyTree


class Landing(Paths):
    """Paths around the proposal's score; `weights` are the c_i of every step's stretch, None counts every path once."""

    weights: Float[Array, "batch time particle"] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    def begin(self, state: PyTree) -> States:
        return States(state, None if self.weights is None else state, held(state))

    def propagate(self, model: SequenceModel, key: Key[Array, ""], state: States, inputs: StepInputs) -> Propagated:
        still, still_inputs = held(model), held(inputs)
        dtype = weight_dtype(model)
        proposal = model.proposal(state.sampling, inputs.full, model.prior(state.sampling, inputs.past))
        latent = sample(proposal, key, dtype)
        following = model.advance(state.sampling, latent, inputs.past_next)
        if self.weights is None:
            seen, density, density_following = latent, state.sampling, None
        else:
            seen, density = counted(latent, kept(inputs.path_weights)), state.density
            density_following = model.advance(density, seen, inputs.past_next)
        log_likelihood = observation_log_prob(model.emission(density, seen, inputs.past), inputs.x, inputs.mask)
        log_prior = log_prob(model.prior(density, inputs.past), seen)
        fixed = still.proposal(state.proposal, still_inputs.full, still.prior(state.proposal, still_inputs.past))
        log_ratio = log_prior - log_prob(fixed, seen)
        after = States(following, density_following, still.advance(state.proposal, seen, still_inputs.past_next))
        return Propagated(latent, log_likelihood.astype(dtype), log_ratio.astype(dtype), after)

    def resume(self, resampled: Bool[Array, ""], state: States) -> States:
        return select(resampled, self.begin(state.sampling), state)


def held(tree: PyTree) -> PyTree:
    """The same numbers, hidden from derivatives."""
    return jax.tree.map(lambda leaf: lax.stop_gradient(leaf) if _moves(leaf) else leaf, tree)


def _moves(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)


def counted(latent: PyTree, weight: Float[Array, ""]) -> PyTree:
    """The same numbers, whose derivatives count `weight` times."""
    return jax.tree.map(lambda leaf: leaf + (weight - 1) * (leaf - lax.stop_gradient(leaf)), latent)
