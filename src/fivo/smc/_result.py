"""What a filter found."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from fivo.errors import InputError
from fivo.models import untwisted
from fivo.smc._step import Particles, StepInfo
from fivo.weights import normalize

Record = Literal["log_weights", "ancestors", "latents"]
"""What a filter stores for each particle and step if `keep` names it."""
RECORDS = ("log_weights", "ancestors", "latents")


class FilterResult(eqx.Module):
    """What a filter found; weights, ancestors and latents only if they were kept.

    Weights are normalised and those before resampling; resampling decided at step t acts before step t + 1. Past a
    sequence's end increments and `kl` are zero and nothing is resampled.
    """

    log_increments: Float[Array, "batch time"]
    """log p̂_t."""
    ess: Float[Array, "batch time"]
    """The effective sample size 1 / Σ w²."""
    resampled: Bool[Array, "batch time"]
    """Whether particles were resampled after the step."""
    kl: Float[Array, "batch time"]
    """The average of log q_t - log p_t over the particles."""
    log_weights: Float[Array, "batch time particle"] | None
    """Normalised log-weights before resampling."""
    ancestors: Int[Array, "batch time particle"] | None
    """`ancestors[t, i]` is the particle of step t that particle i of step t + 1 continues."""
    latents: PyTree
    """z_t of every particle, [batch, time, particle, ...]."""
    particles: Particles
    """The final particles: the states after the last step and their log-weights, resampling done."""
    log_proposal: Float[Array, "batch time particle"] | None = None
    """log q_t(z_t), where the rules of a gradient asked for it."""
    log_twists: Float[Array, "batch time particle"] | None = None
    """log r_t(z_t), of a twisted filter that kept its weights, which are those of p(z_1:t, x_1:t) r_t(z_t)."""
    discrete: bool = eqx.field(static=True, default=False)
    """Whether some latents are discrete, so that no derivative passes through their draws."""

    @classmethod
    def of(cls, particles: Particles, info: StepInfo, *, discrete: bool = False) -> "FilterResult":
        """The result of a run.

        Args:
            particles: the final particles.
            info: what happened in its steps [batch, time, ...].
            discrete: whether any part of the latents is discrete.

        Returns:
            The result.
        """
        return cls(
            log_increments=info.log_increment,
            ess=info.ess,
            resampled=info.resampled,
            kl=info.kl,
            log_weights=info.log_weights,
            ancestors=info.ancestors,
            latents=info.latents,
            particles=Particles(untwisted(particles.state), particles.log_weights),
            log_proposal=info.log_proposal,
            log_twists=info.log_twist,
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

    @property
    def filter_weights(self) -> Float[Array, "batch time particle"]:
        """Normalised log-weights for p(z_1:t | x_1:t): those kept, less the twist where the filter was twisted."""
        log_weights = self.record("log_weights")
        if self.log_twists is None:
            return log_weights
        return normalize(jnp.where(jnp.isneginf(log_weights), -jnp.inf, log_weights - self.log_twists))[0]

    def record(self, name: Record) -> PyTree:
        """Look up a per-particle record; raises `InputError` if it was not kept.

        Args:
            name: "log_weights", "ancestors" or "latents".

        Returns:
            The record [batch, time, particle, ...].
        """
        self.require(name)
        return getattr(self, name)

    def require(self, *names: Record) -> None:
        """Raise `InputError` unless these per-particle records were kept.

        Args:
            names: "log_weights", "ancestors" or "latents".
        """
        absent = [name for name in names if getattr(self, name) is None]
        if absent:
            keep = ", ".join(f'"{name}"' for name in names)
            raise InputError(f"this result holds no {' and no '.join(absent)}; run the filter with keep=({keep},).")


def checked_records(keep: object) -> frozenset[str]:
    """The records to keep, if they are known ones."""
    wanted = frozenset((keep,) if isinstance(keep, str) else tuple(keep))  # pyright: ignore[reportArgumentType]
    unknown = wanted - set(RECORDS)
    if unknown:
        raise InputError(f"keep must hold names among {', '.join(RECORDS)}, got {sorted(map(str, unknown))}.")
    return wanted


def without(info: StepInfo, keep: frozenset[str]) -> StepInfo:
    """The records of a step that were asked for."""
    dropped: list[str] = sorted(set(RECORDS) - keep)
    if info.log_twist is not None and "log_weights" not in keep:
        dropped.append("log_twist")
    return eqx.tree_at(lambda i: [getattr(i, name) for name in dropped], info, replace=[None] * len(dropped))
