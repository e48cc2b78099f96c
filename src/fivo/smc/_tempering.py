"""SMC samplers: the filter run along temperatures β instead of time.

From q(z | x) to p(x, z) through γ_β(z) = q(z | x)^(1-β) p(x, z)^β (Appendix of the paper; Del Moral, Doucet and Jasra
2006). A temperature is a step of a `SequenceModel` whose latent is a whole trajectory of the model that is annealed:
its first prior is q, its later ones are transition kernels, and what it observes is the change of temperature.
Without resampling the filter is annealed importance sampling.
"""

from collections.abc import Callable, Collection
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Key, PyTree

from fivo.batch import Batch, as_batch
from fivo.errors import InputError
from fivo.models import Reading, SequenceModel, densities, draw, read_batch
from fivo.smc._filter import ParticleFilter, check_filter
from fivo.smc._kernels import Kernel
from fivo.smc._result import FilterResult, Record


class Position(NamedTuple):
    """A trajectory at some temperature.

    Args:
        latents: z.
        log_ratio: log p(x, z) - log q(z | x).
        log_correction: what its kernel adds to the log-weight.
        accepted: whether its kernel moved.
    """

    latents: PyTree
    log_ratio: Float[Array, "*batch"]
    log_correction: Float[Array, "*batch"]
    accepted: Bool[Array, "*batch"]


class Tempered(SequenceModel):
    """Temperatures as time; a frame is (which sequence of the readings, β_i, β_{i+1}), known before it is seen.

    Args:
        model: the model whose posterior is approached.
        readings: its sequences.
        kernel: how trajectories move at each temperature.
    """

    model: SequenceModel
    readings: Reading
    kernel: Kernel

    def encode(self, sequence):  # noqa: ANN001
        return sequence.observations, None, None

    def initial_state(self, context):  # noqa: ANN001
        """Something of the shape of z: the first draw, from q, does not look at it.

        Args:
            context: the first frame.

        Returns:
            Zeros shaped like z.
        """
        shapes = jax.eval_shape(lambda: draw(self.model, self._reading(context), key=jax.random.key(0)))
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def initial_prior(self, state, context):  # noqa: ANN001
        """q, at the first temperature.

        Args:
            state: not used.
            context: the first frame.

        Returns:
            The distribution of the first trajectory.
        """
        reading = self._reading(context)

        def start(key: Key[Array, ""]) -> Position:
            latents = draw(self.model, reading, key=jax.random.split(key)[0])
            found = densities(self.model, reading, latents)
            return Position(latents, found.log_weight, jnp.zeros_like(found.log_weight), jnp.ones((), bool))

        return Transition(start)

    def prior(self, state, context):  # noqa: ANN001
        """The kernel whose stationary density is γ_β.

        Args:
            state: the trajectory.
            context: the frame.

        Returns:
            The distribution of the next trajectory.
        """
        beta, reading = context[1], self._reading(context)

        def log_target(latents: PyTree) -> Float[Array, ""]:
            found = densities(self.model, reading, latents)
            return found.log_proposal + _power(beta, found.log_weight)

        def move(key: Key[Array, ""]) -> Position:
            moved = self.kernel(jax.random.split(key)[1], state, log_target)
            log_ratio = densities(self.model, reading, moved.latents).log_weight
            return Position(moved.latents, log_ratio, moved.log_correction.astype(log_ratio.dtype), moved.accepted)

        return Transition(move)

    def emission(self, state, latent, context):  # noqa: ANN001
        _, beta, beta_next = context
        return Potential(_power(beta_next - beta, latent.log_ratio) + latent.log_correction, context.shape[0])

    def advance(self, state, latent, history):  # noqa: ANN001
        return latent.latents

    def _reading(self, context: Float[Array, " entry"]) -> Reading:
        index = context[0].astype(jnp.int32)
        return jax.tree.map(lambda leaf: leaf[index], self.readings)


# numpyro's own distributions override their base class like this.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
class Transition(dist.Distribution):
    """A prior that can be drawn from but has no density; as its own proposal it needs none."""

    def __init__(self, transition: Callable[[Key[Array, ""]], Position]) -> None:
        self.transition = transition
        super().__init__((), ())

    def sample(self, key: Key[Array, ""], sample_shape: tuple[int, ...] = ()) -> Any:
        return self.transition(key)


class Potential(dist.Distribution):
    """An emission with a given log-probability, whatever the frame."""

    pytree_data_fields: ClassVar = ("log_value",)
    pytree_aux_fields: ClassVar = ()

    def __init__(self, log_value: Float[Array, ""], num_entries: int) -> None:
        self.log_value = log_value
        super().__init__((), (num_entries,))

    def log_prob(self, value: Float[Array, " entry"], intermediates: None = None) -> Float[Array, ""]:
        return self.log_value


def anneal(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Any,
    *,
    betas: Float[Array, " temperature"],
    kernel: Kernel,
    key: Key[Array, "*batch"],
    keep: Collection[Record] = (),
) -> FilterResult:
    """Anneal whole trajectories from q to p.

    Args:
        pf: the filter that runs along the temperatures; one that never resamples is annealed importance sampling.
        model: the model whose trajectories are annealed.
        batch: a `Batch`, or what can be made one.
        betas: inverse temperatures that rise from 0 to 1. Their number less one is the paper's N; there is one
            transition less than that.
        kernel: how trajectories move, such as `HMC(0.1, 5)`.
        key: one random key, or one for each sequence.
        keep: which per-particle records to return.

    Returns:
        The filter's result; its time is the temperature, and its latents are `Position`s.
    """
    check_filter(pf)
    batch = as_batch(batch)
    if betas.shape[0] < 2:
        raise InputError(f"betas must be at least two temperatures, 0 and 1, got {betas.shape[0]}.")
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel must be a fivo.smc.Kernel, such as HMC(0.1, 5), got {kernel!r:.60}.")
    tempered = Tempered(model, read_batch(model, batch), kernel)
    num_sequences, num_steps = batch.lengths.shape[0], betas.shape[0] - 1
    shape = (num_sequences, num_steps)
    frames = jnp.stack(
        [
            jnp.broadcast_to(jnp.arange(num_sequences, dtype=betas.dtype)[:, None], shape),
            jnp.broadcast_to(betas[None, :-1], shape),
            jnp.broadcast_to(betas[None, 1:], shape),
        ],
        axis=-1,
    )
    temperatures = Batch(frames, jnp.full((num_sequences,), num_steps, jnp.int32))
    return pf(tempered, temperatures, key=key, keep=keep)


def _power(exponent: Float[Array, ""], log_value: Float[Array, ""]) -> Float[Array, ""]:
    """log(value^exponent), where anything to the power of zero is one."""
    nothing = exponent == 0
    return jnp.where(nothing, 0, exponent * jnp.where(nothing, 0, log_value))
