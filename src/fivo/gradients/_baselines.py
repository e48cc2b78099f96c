"""What is subtracted from a learning signal: less noise at no bias, as long as it does not depend on the draw."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from fivo.errors import InputError
from fivo.gradients._intervals import from_here, interval_ends, next_step
from fivo.smc import FilterResult


class Signals(eqx.Module):
    """What follows the draws of every step, and where it is the same for draws of several particles.

    `future[t]` is log p̂ of step `t` and all later ones. A latent of step t is followed by `future[t]`, an ancestor
    drawn after it by `future[t + 1]`; `steps_left` counts accordingly.

    Args:
        future: log p̂ of each step and all later ones [batch, time].
        resampled: whether particles were resampled after each step [batch, time].
        log_weights: normalised log-weights before resampling [batch, time, particle].
        lengths: of the sequences [batch].
    """

    future: Float[Array, "batch time"]
    resampled: Bool[Array, "batch time"]
    log_weights: Float[Array, "batch time particle"]
    lengths: Int[Array, " batch"]

    @classmethod
    def of(cls, result: FilterResult, lengths: Int[Array, " batch"]) -> "Signals":
        """The signals of a run; one that is not finite teaches nothing and is zero.

        Args:
            result: what the filter returned, with its record of log-weights.
            lengths: of the sequences [batch].

        Returns:
            The signals, hidden from derivatives.
        """
        future = from_here(lax.stop_gradient(result.log_increments))
        future = jnp.where(jnp.isfinite(future), future, 0)
        return cls(future, result.resampled, lax.stop_gradient(result.record("log_weights")), lengths)

    @property
    def steps_left(self) -> Float[Array, "batch time"]:
        """The number of this and all later steps."""
        steps = jnp.arange(self.future.shape[1], dtype=self.lengths.dtype)
        return jnp.maximum(self.lengths[:, None] - steps[None, :], 0).astype(self.future.dtype)


class Baseline(eqx.Module):
    """Learning signals minus what could be known without the draw. Subclass it for a baseline of your own."""

    @property
    def num_filters(self) -> int:
        """Independent filters per sequence; the copies of a sequence are adjacent in a batch."""
        return 1

    def latents(self, signals: Signals) -> Float[Array, "batch time draw"]:
        """Learning signals for the latents of every step.

        Args:
            signals: what follows the draws.

        Returns:
            Signals minus the baseline [batch, time, 1 or particle].
        """
        raise NotImplementedError

    def ancestors(self, signals: Signals) -> Float[Array, "batch time draw"]:
        """Learning signals for the ancestors drawn after every step.

        Args:
            signals: what follows the draws.

        Returns:
            Signals minus the baseline [batch, time, 1 or particle].
        """
        raise NotImplementedError

    def learn(self, log_increments: Float[Array, "batch time"], lengths: Int[Array, " batch"]) -> "Baseline":
        """Take in a run, for baselines with a memory.

        Args:
            log_increments: log p̂_t of every step [batch, time].
            lengths: of the sequences [batch].

        Returns:
            The baseline for the next run.
        """
        return self


class NoBaseline(Baseline):
    """The paper's learning signals log p̂(x_1:T) / p̂(x_1:t) as they are."""

    def latents(self, signals: Signals) -> Float[Array, "batch time 1"]:
        return signals.future[..., None]

    def ancestors(self, signals: Signals) -> Float[Array, "batch time 1"]:
        return next_step(signals.future)[..., None]


def _number(value: ArrayLike) -> Float[Array, ""]:
    return jnp.asarray(value, float)


class MovingAverage(Baseline):
    """The paper's baseline: linear in the number of timesteps left, its slope a moving average over earlier runs.

    `learn` returns the baseline for the next run; the training loop calls it.

    Args:
        slope: log p̂ per remaining step, as learned so far.
        runs: how many runs it has learned from.
        decay: how much of the slope is kept from run to run, once there were many.
    """

    slope: Float[Array, ""] = eqx.field(converter=_number, default=0.0)
    runs: Float[Array, ""] = eqx.field(converter=_number, default=0.0)
    decay: float = eqx.field(static=True, default=0.95)

    def latents(self, signals: Signals) -> Float[Array, "batch time 1"]:
        return (signals.future - self.slope.astype(signals.future.dtype) * signals.steps_left)[..., None]

    def ancestors(self, signals: Signals) -> Float[Array, "batch time 1"]:
        return next_step(self.latents(signals))

    def learn(self, log_increments: Float[Array, "batch time"], lengths: Int[Array, " batch"]) -> "MovingAverage":
        """The first runs count alike and later ones decay; one that is not finite teaches nothing.

        Args:
            log_increments: log p̂_t of every step [batch, time].
            lengths: of the sequences [batch].

        Returns:
            The baseline for the next run.
        """
        steps = lengths.astype(log_increments.dtype)
        # Σ_t of what follows step t, by Σ_t of the steps that follow it: the slope of the signals over all steps.
        observed = jnp.sum(from_here(log_increments)) / jnp.sum(steps * (steps + 1) / 2)
        observed = lax.stop_gradient(observed).astype(self.slope.dtype)
        observed = jnp.where(jnp.isfinite(observed), observed, self.slope)
        share = jnp.maximum(1 / (self.runs + 1), 1 - self.decay)
        return MovingAverage(self.slope + share * (observed - self.slope), self.runs + 1, self.decay)


class OtherFilters(Baseline):
    """The average signal of the other filters, out of several independent ones that run on every sequence.

    Args:
        copies: filters per sequence, at least two.
    """

    copies: int = eqx.field(static=True, default=2)

    def __check_init__(self) -> None:
        if self.copies < 2:
            raise InputError(f"OtherFilters must be given at least two copies, got {self.copies!r:.60}.")

    @property
    def num_filters(self) -> int:
        return self.copies

    def latents(self, signals: Signals) -> Float[Array, "batch time 1"]:
        future = signals.future.reshape(-1, self.copies, signals.future.shape[1])
        others = (jnp.sum(future, axis=1, keepdims=True) - future) / (self.copies - 1)
        return (future - others).reshape(*signals.future.shape, 1)

    def ancestors(self, signals: Signals) -> Float[Array, "batch time 1"]:
        return next_step(self.latents(signals))


class OtherParticles(Baseline):
    """What the signal would have been with the other particles alone, up to the next resampling.

    Behind that resampling every particle depends on the draw, and nothing is subtracted. Weights of the others at the
    start of an interval, v, and at its end, w, say all: their part of its estimate is Σ_j≠i w_j / Σ_j≠i v_j.
    """

    def latents(self, signals: Signals) -> Float[Array, "batch time particle"]:
        """A latent is followed by the rest of its interval; its particle entered the step with the weight v.

        Args:
            signals: what follows the draws.

        Returns:
            Signals minus the baseline [batch, time, particle].
        """
        fresh = jnp.concatenate([jnp.ones_like(signals.resampled[:, :1]), signals.resampled[:, :-1]], axis=1)
        before = jnp.concatenate([signals.log_weights[:, :1], signals.log_weights[:, :-1]], axis=1)
        uniform = jnp.full_like(before, -jnp.log(before.shape[-1]))
        return self._signal(signals, jnp.where(fresh[..., None], uniform, before))

    def ancestors(self, signals: Signals) -> Float[Array, "batch time particle"]:
        """An ancestor is followed by the whole of the next interval, entered with equal weights.

        Args:
            signals: what follows the draws.

        Returns:
            Signals minus the baseline [batch, time, particle].
        """
        uniform = jnp.full_like(signals.log_weights, -jnp.log(signals.log_weights.shape[-1]))
        return next_step(self._signal(signals, uniform))

    def _signal(
        self, signals: Signals, entered: Float[Array, "batch time particle"]
    ) -> Float[Array, "batch time particle"]:
        ends = interval_ends(signals.resampled, signals.lengths)
        later = jnp.take_along_axis(next_step(signals.future), ends, axis=1)
        left = jnp.take_along_axis(signals.log_weights, ends[..., None], axis=1)
        start, end = _log_others(entered), _log_others(left)
        known = jnp.isfinite(start) & jnp.isfinite(end)
        gain = jnp.where(known, start - end, (signals.future - later)[..., None])
        return later[..., None] + gain


def _log_others(log_weights: Float[Array, "batch time particle"]) -> Float[Array, "batch time particle"]:
    """log Σ_j≠i w_j; for the largest weight summed without it, as 1 - w would have no digits left."""
    weights = jnp.exp(log_weights)
    particles = jnp.broadcast_to(jnp.arange(weights.shape[-1]), weights.shape)
    largest = particles == jnp.argmax(weights, axis=-1, keepdims=True)
    without_largest = jnp.sum(jnp.where(largest, 0, weights), axis=-1, keepdims=True)
    return jnp.log(jnp.where(largest, without_largest, 1 - weights))


BASELINES: dict[str, type[Baseline]] = {
    "none": NoBaseline,
    "moving-average": MovingAverage,
    "filters": OtherFilters,
    "particles": OtherParticles,
}


def get_baseline(baseline: str | Baseline) -> Baseline:
    """Look up a baseline.

    Args:
        baseline: "none", "moving-average", "filters" or "particles", or a `Baseline`.

    Returns:
        The baseline of that name, or the given one itself.
    """
    if isinstance(baseline, Baseline):
        return baseline
    if baseline not in BASELINES:
        raise InputError(f"baseline must be one of {', '.join(BASELINES)}, got {baseline!r:.60}.")
    return BASELINES[baseline]()
