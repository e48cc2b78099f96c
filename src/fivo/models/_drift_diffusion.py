"""The Gaussian drift diffusion of Lawson et al. (2022): one observation after many steps, all of it known exactly."""

from typing import Any, ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float

from fivo.batch import Batch, Sequence, as_batch
from fivo.errors import InputError
from fivo.models._contract import SequenceModel
from fivo.models._emissions import check_frames
from fivo.models._twisted import Twist

Proposal = Literal["prior", "smoothing", "learned"]


class LinearProposal(eqx.Module):
    """q_t = N(a_t z_{t-1} + b_t x + c_t, s_t²), with parameters of every step."""

    slope: Float[Array, "*time"]
    gain: Float[Array, "*time"]
    offset: Float[Array, "*time"]
    log_scale: Float[Array, "*time"]


class Goal(NamedTuple):
    """The one observation, whether it was made, and how many steps before it a step is."""

    x: Float[Array, "*time 1"]
    seen: Bool[Array, "*time 1"]
    left: Float[Array, "*time 1"]


class DriftDiffusion(SequenceModel):
    """z_1 ~ N(d, 1), z_t ~ N(z_{t-1} + d, 1), and one observation x ~ N(z_T + d, 1): all frames but the last are
    missing.

    Args:
        num_steps: T, the length of every sequence.
        drift: d.
        proposal: `prior` (bootstrap), `smoothing` p(z_t | z_{t-1}, x), or `learned` N(a_t z_{t-1} + b_t x + c_t, s_t²).

    `batch(x)` makes sequences of observations. p(x) = N((T + 1) d, T + 1).
    """

    drift: Float[Array, ""]
    learned: LinearProposal | None
    num_steps: int = eqx.field(static=True)
    proposal_kind: Proposal = eqx.field(static=True)

    markov: ClassVar[bool] = True

    def __init__(self, num_steps: int, drift: Any = 1.0, *, proposal: Proposal = "prior") -> None:
        if not isinstance(num_steps, int) or isinstance(num_steps, bool) or num_steps < 1:
            raise InputError(f"num_steps must be a positive integer, got {num_steps!r:.60}.")
        if proposal not in get_args(Proposal):
            raise InputError(f"proposal must be one of {', '.join(get_args(Proposal))}, got {proposal!r:.60}.")
        self.drift = jnp.asarray(drift, jnp.result_type(jnp.asarray(drift), jnp.float32))
        self.num_steps, self.proposal_kind = num_steps, proposal
        zeros = jnp.zeros(num_steps, self.drift.dtype)
        self.learned = LinearProposal(zeros + 1, zeros, zeros, zeros) if proposal == "learned" else None

    def batch(self, x: Any) -> Batch:
        """Sequences of given observations.

        Args:
            x: observations [batch].

        Returns:
            Sequences of T frames whose last one holds the observation, the others missing.
        """
        x = jnp.asarray(x, self.drift.dtype)
        if x.ndim != 1:
            raise InputError(f"x must have shape [batch], got {x.shape}.")
        frames = jnp.zeros((x.shape[0], self.num_steps, 1), x.dtype).at[:, -1, 0].set(x)
        last = jnp.arange(self.num_steps) == self.num_steps - 1
        mask = jnp.broadcast_to(last[None, :, None], frames.shape)
        return Batch(frames, jnp.full(x.shape, self.num_steps, jnp.int32), mask)

    def encode(self, sequence: Sequence):
        if self.proposal_kind == "prior":
            check_frames(sequence.observations, 1)
            return None, None, None
        goal = self.goal(sequence)
        return None, (goal, None if self.learned is None else at_steps(self.learned, goal.x.shape[0])), None

    def encode_next(self, memory, x, mask, inputs):
        return None, None, memory

    @property
    def causal(self) -> bool:
        return self.proposal_kind == "prior"

    def initial_state(self, context):
        return jnp.zeros(1, self.drift.dtype)

    def prior(self, state, context):
        return dist.Normal(state + self.drift, jnp.ones_like(state))

    def proposal(self, state, evidence, prior):
        if self.proposal_kind == "prior":
            return prior
        goal, linear = evidence
        if linear is None:
            mean, scale = (goal.left * state + goal.x) / (goal.left + 1), jnp.sqrt(goal.left / (goal.left + 1))
            return dist.Normal(jnp.where(goal.seen, mean, state + self.drift), jnp.where(goal.seen, scale, 1))
        mean = linear.slope * state + linear.gain * goal.x + linear.offset
        return dist.Normal(mean, jnp.exp(linear.log_scale) * jnp.ones_like(mean))

    def emission(self, state, latent, context):
        return dist.Normal(latent + self.drift, jnp.ones_like(latent))

    def log_evidence(self, batch: Any) -> Float[Array, " batch"]:
        """The exact evidence.

        Args:
            batch: a `Batch`, or what can be made one.

        Returns:
            log p(x) of every sequence, [batch].
        """
        batch = as_batch(batch)
        last = self.num_steps - 1
        x = batch.observations[:, last, 0].astype(self.drift.dtype)
        score = _log_normal(x, (self.num_steps + 1) * self.drift, jnp.asarray(self.num_steps + 1, x.dtype))
        return score if batch.mask is None else jnp.where(batch.mask[:, last, 0], score, 0)

    def exact_lookahead(self, sequence: Sequence) -> Goal:
        """The exact lookahead of every step.

        Args:
            sequence: observations [time, 1], length and mask.

        Returns:
            What p(x | z_t) depends on, for every step.
        """
        return self.goal(sequence)

    def log_lookahead(self, latent: Float[Array, " one"], future: Goal) -> Float[Array, ""]:
        """The exact lookahead of one latent.

        Args:
            latent: z_t [1].
            future: what `exact_lookahead` says of the step.

        Returns:
            log p(x | z_t) = log N(x; z_t + (T - t) d, T - t), with t from 0.
        """
        score = _log_normal(future.x, latent + future.left * self.drift, future.left)
        return jnp.sum(jnp.where(future.seen, score, 0))

    def goal(self, sequence: Sequence) -> Goal:
        """The one observation of a sequence; frames past the T-th are padding.

        Args:
            sequence: observations [time, 1], length and mask.

        Returns:
            It as every step sees it.
        """
        x, mask = sequence.observations, sequence.mask
        check_frames(x, 1)
        if x.shape[0] < self.num_steps:
            raise InputError(f"sequences must have {self.num_steps} steps, got {x.shape[0]}.")
        last = self.num_steps - 1
        shape = x.shape
        seen = jnp.ones(shape, bool) if mask is None else jnp.broadcast_to(mask[last], shape)
        left = jnp.maximum(self.num_steps - jnp.arange(shape[0]), 1).astype(self.drift.dtype)
        return Goal(jnp.broadcast_to(x[last].astype(self.drift.dtype), shape), seen, left[:, None])


class DriftTwist(Twist):
    """r_t = N(x; z_t + e_t, v_t) / N(x; m_t, u_t) for a `DriftDiffusion`, with free parameters of every step.

    Args:
        num_steps: T.
        dtype: of the parameters.

    The exact lookahead is e_t = (T - t) d, v_t = T - t, with t from 0; it begins as that of d = 0. The second density
    is the same for all particles: filters do not see it, and density-ratio estimation learns p(x) with it.
    """

    shift: Float[Array, "*time"]
    log_variance: Float[Array, "*time"]
    marginal_mean: Float[Array, "*time"]
    log_marginal_variance: Float[Array, "*time"]

    def __init__(self, num_steps: int, dtype: Any = jnp.float32) -> None:
        self.shift = self.marginal_mean = jnp.zeros(num_steps, dtype)
        self.log_variance = jnp.log(num_steps - jnp.arange(num_steps, dtype=dtype))
        self.log_marginal_variance = jnp.full(num_steps, jnp.log(num_steps + 1.0), dtype)

    def check(self, model: SequenceModel) -> None:
        if not isinstance(model.bare, DriftDiffusion) or model.bare.num_steps != self.shift.shape[0]:
            raise InputError(
                f"a DriftTwist of {self.shift.shape[0]} steps must go with a DriftDiffusion of as many, got "
                f"{type(model).__name__}."
            )

    def lookahead(self, model: Any, sequence: Sequence) -> tuple[Goal, "DriftTwist"]:
        goal = model.goal(sequence)
        return goal, at_steps(self, goal.x.shape[0])

    def __call__(self, model: Any, state: Any, latent: Float[Array, " one"], future: Any) -> Float[Array, ""]:
        goal, now = future
        ahead = _log_normal(goal.x, latent + now.shift, jnp.exp(now.log_variance))
        alone = _log_normal(goal.x, now.marginal_mean, jnp.exp(now.log_marginal_variance))
        return jnp.sum(jnp.where(goal.seen, ahead - alone, 0))


def at_steps(parameters: Any, time: int) -> Any:
    """Parameters [T] for `time` steps; those past the T-th, which are padding, take the last."""

    return jax.tree.map(lambda leaf: leaf[jnp.minimum(jnp.arange(time), leaf.shape[0] - 1)], parameters)


def _log_normal(
    x: Float[Array, "*shape"], mean: Float[Array, "..."], variance: Float[Array, "..."]
) -> Float[Array, "*shape"]:
    return -0.5 * ((x - mean) ** 2 / variance + jnp.log(2 * jnp.pi * variance))
