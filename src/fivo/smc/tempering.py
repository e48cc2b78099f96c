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

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.models.scoring import weight_dtype
from fivo.resampling import Criterion, Scheme
from fivo.smc.filter import FilterResult, Record, filter
from fivo.smc.kernels import Kernel
from fivo.smc.step import select
from fivo.smc.whole import Reading, densities, draw, read_batch


class Position(NamedTuple):
    """A trajectory z at some temperature, log p(x, z) - log q(z | x), and how its kernel moved."""

    latents: PyTree
    log_ratio: Float[Array, "*batch"]
    log_correction: Float[Array, "*batch"]
    accepted: Bool[Array, "*batch"]


class Tempered(SequenceModel):
    """Temperatures as time; a frame is (which sequence of the readings, β_i, β_{i+1})."""

    model: SequenceModel
    readings: Reading
    kernel: Kernel

    def encode(self, observations, mask, length):  # noqa: ANN001, ANN201
        first = (jnp.arange(len(observations) + 1) == 0)[:, None].astype(observations.dtype)
        return jnp.concatenate([first, jnp.concatenate([observations, observations[-1:]])], axis=1), ()

    def initial_state(self, past):  # noqa: ANN001, ANN201
        """Something of the shape of z: the first draw from q does not look at it."""
        shapes = jax.eval_shape(lambda: draw(self.model, self._reading(past), jax.random.key(0)))
        dtype = weight_dtype(self)
        return jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, dtype if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf.dtype),
            shapes,
        )

    def prior(self, state, past):  # noqa: ANN001, ANN201
        """q at the first temperature, afterwards the kernel whose stationary density is γ_β."""
        first, beta, reading = past[0] > 0, past[2], self._reading(past)

        def scores(latents: PyTree) -> tuple[Float[Array, ""], Float[Array, ""]]:
            """log γ_β and log p - log q."""
            found = densities(self.model, reading, latents)
            return found.log_proposal + _power(beta, found.log_weight), found.log_weight

        def transition(key: Key[Array, ""]) -> Position:
            draw_key, move_key = jax.random.split(key)
            # The kernel starts from a draw of q at first, where its result is thrown away: from nothing it could
            # reach a NaN, which a selection does not keep out of the gradient.
            start = select(first, draw(self.model, reading, draw_key), state)
            moved = self.kernel(move_key, start, lambda latents: scores(latents)[0])
            latents = select(first, start, moved.latents)
            return Position(
                latents, scores(latents)[1], jnp.where(first, 0, moved.log_correction), moved.accepted | first
            )

        return Transition(transition)

    def emission(self, state, latent, past):  # noqa: ANN001, ANN201
        _, _, beta, beta_next = past
        return Potential(_power(beta_next - beta, latent.log_ratio) + latent.log_correction, past.shape[0] - 1)

    def advance(self, state, latent, past):  # noqa: ANN001, ANN201
        return latent.latents

    def _reading(self, past: Float[Array, " entry"]) -> Reading:
        index = past[1].astype(jnp.int32)
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
    model: SequenceModel,
    batch: Batch,
    *,
    betas: Float[Array, " temperature"],
    kernel: Kernel,
    num_particles: int,
    key: Key[Array, "*batch"],
    criterion: Criterion,
    resampling: str | Scheme = "multinomial",
    keep: Collection[Record] = (),
) -> FilterResult:
    """Anneal whole trajectories from q to p; the result's time is the temperature, its latents are `Position`s.

    `betas` rise from 0 to 1. Their number less one is the paper's N; there is one transition less than that.
    """
    if betas.shape[0] < 2:
        raise InputError(f"got {betas.shape[0]} temperatures where at least two, 0 and 1, were expected.")
    if not isinstance(kernel, Kernel):
        raise InputError(f"got kernel={kernel!r} where a kernel was expected, such as HMC(0.1, 5).")
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
    return filter(
        tempered,
        temperatures,
        num_particles=num_particles,
        key=key,
        resampling=resampling,
        criterion=criterion,
        keep=keep,
    )


def _power(exponent: Float[Array, ""], log_value: Float[Array, ""]) -> Float[Array, ""]:
    """log(value^exponent), where anything to the power of zero is one."""
    nothing = exponent == 0
    return jnp.where(nothing, 0, exponent * jnp.where(nothing, 0, log_value))
