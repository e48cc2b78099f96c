"""Path gradients without the proposal's own score: sticking the landing, and doubly reparameterized.

A pathwise gradient contains Σ_i c_i ∇log q(z_i), the score of the proposal at latents held fixed, with c_i a
trajectory's normalised weight. Sticking the landing (Roeder, Wu and Duvenaud 2017) drops it, which is right on average
for one particle only. The doubly reparameterized gradient (Tucker, Lawson, Gu and Maddison 2019) replaces it by what it
is on average, which turns the weight c_i of the path through z_i into c_i². With resampling the trajectories are those
between two resamplings, and the weights those at the end of each.

Models share parameters between p and q, and their states depend on earlier latents; "latents held fixed" therefore
takes separate states, which see the latents but not where these came from:

- `sampling`: the filter's own state, that the next latent is drawn from;
- `density`: what log p and log g read. Its latents count c_i times; after a resampling it is the sampling state;
- `proposal`: what log q reads. Parameters, and the state after a resampling, are hidden from derivatives.
"""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from fivo.distributions import log_prob, sample, weight_dtype
from fivo.gradients._gradient import Gradient, hold
from fivo.gradients._intervals import interval_ends
from fivo.models import Frame, SequenceModel, extend
from fivo.smc import FilterResult, Proposed, Rules, select


class StickingTheLanding(Gradient):
    """The pathwise gradient without the score of q: less noise near the best q; biased for N > 1."""

    name: ClassVar[str] = "sticking-the-landing"

    def rules(self, pilot: FilterResult | None, lengths: Int[Array, " batch"]) -> Rules:
        return Landing()


class DoublyReparameterized(Gradient):
    """The same on average as the pathwise gradient of a fixed schedule, with less noise in q. Runs the filter twice."""

    name: ClassVar[str] = "doubly-reparameterized"
    pilot: ClassVar[bool] = True

    def rules(self, pilot: FilterResult | None, lengths: Int[Array, " batch"]) -> Rules:
        if pilot is None:
            return Landing()
        ends = interval_ends(pilot.resampled, lengths)
        return Landing(jnp.exp(jnp.take_along_axis(pilot.record("log_weights"), ends[..., None], axis=1)))


class States(NamedTuple):
    """What particles carry; without weights the density's state is the sampling one."""

    sampling: PyTree
    density: PyTree
    proposal: PyTree


class Landing(Rules):
    """Paths around the proposal's score; `weights` are the c_i of every step's interval, None counts every path
    once.
    """

    weights: Float[Array, "batch time particle"] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    def begin(self, state: PyTree) -> States:
        return States(state, None if self.weights is None else state, hold(state))

    def propose(
        self,
        model: SequenceModel,
        key: Key[Array, ""],
        state: States,
        frame: Frame,
        weight: Float[Array, ""] | None,
        first: bool,
    ) -> Proposed:
        dtype = weight_dtype(model)
        drawn = extend(model, state.sampling, frame, lambda q: sample(q, key, dtype), first=first)
        seen, scored = drawn.latent, drawn
        if weight is not None:
            seen = count(drawn.latent, weight)
            scored = extend(model, state.density, frame, lambda _: seen, first=first)
        fixed = extend(hold(model), state.proposal, hold(frame), lambda _: seen, first=first)
        log_ratio = log_prob(scored.prior, seen) - log_prob(fixed.proposal, seen)
        after = States(drawn.state, None if weight is None else scored.state, fixed.state)
        return Proposed(drawn.latent, scored.log_likelihood, log_ratio.astype(dtype), after)

    def resume(self, resampled: Bool[Array, ""], state: States) -> States:
        return select(resampled, self.begin(state.sampling), state)


def count(latent: PyTree, weight: Float[Array, ""]) -> PyTree:
    """The same numbers, whose derivatives count `weight` times; whole numbers have none."""

    def counted(leaf: Array) -> Array:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        return leaf + (weight - 1) * (leaf - lax.stop_gradient(leaf))

    return jax.tree.map(counted, latent)
