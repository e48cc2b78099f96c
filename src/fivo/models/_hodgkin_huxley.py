"""The stochastic Hodgkin–Huxley neuron that Lawson et al. (2022) learn the current of."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.models._contract import SequenceModel


class Channel(NamedTuple):
    """One kind of ion channel.

    Args:
        conductance: with all gates open, in mS/cm².
        reversal: the potential at which no current flows, in mV.
    """

    conductance: float
    reversal: float


class HodgkinHuxley(SequenceModel):
    """z = (v, logit n, logit m, logit h), C dv/dt = I - g_Na m³h (v - E_Na) - g_K n⁴ (v - E_K) - g_L (v - E_L), and a
    noisy voltage x_t ~ N(v_t, s²).

    Each gate goes to α / (α + β) at the rate α + β, which depend on v. A step holds the rates and conductances, solves
    the linear equations that remain (exponential Euler), and so is stable for every dt; then noise is added. Gates are
    kept as logits, and never leave (0, 1).

    Args:
        current: I in µA/cm², the one parameter that is trained.
        dt: milliseconds between frames.
        sodium, potassium, leak: conductance and reversal potential of the channels, as `Channel(g, E)`.
        capacitance: C in µF/cm².
        voltage_noise: of v, in mV per √ms.
        gate_noise: of the logits of gates, per √ms.
        observation_noise: s, in mV.

    The default values and the rates are those of Lawson et al.; z_1 is spread around -65 mV. `batch(x, every)` makes
    sequences of rare observations.
    """

    current: Float[Array, ""]
    dt: float = eqx.field(static=True)
    sodium: Channel = eqx.field(static=True)
    potassium: Channel = eqx.field(static=True)
    leak: Channel = eqx.field(static=True)
    capacitance: float = eqx.field(static=True)
    voltage_noise: float = eqx.field(static=True)
    gate_noise: float = eqx.field(static=True)
    observation_noise: float = eqx.field(static=True)

    markov: ClassVar[bool] = True

    def __init__(
        self,
        current: Any = 13.0,
        *,
        dt: float = 0.02,
        sodium: tuple[float, float] = (120.0, 50.0),
        potassium: tuple[float, float] = (20.0, -80.0),
        leak: tuple[float, float] = (0.3, -55.4),
        capacitance: float = 1.0,
        voltage_noise: float = 3.0,
        gate_noise: float = 0.1,
        observation_noise: float = 5.0,
    ) -> None:
        positive = {
            "dt": dt,
            "capacitance": capacitance,
            "voltage_noise": voltage_noise,
            "gate_noise": gate_noise,
            "observation_noise": observation_noise,
        }
        for name, value in positive.items():
            if not value > 0:
                raise InputError(f"{name} must be positive, got {value!r:.60}.")
        self.current = jnp.asarray(current, jnp.result_type(jnp.asarray(current), jnp.float32))
        self.sodium, self.potassium, self.leak = Channel(*sodium), Channel(*potassium), Channel(*leak)
        self.dt, self.capacitance, self.voltage_noise = dt, capacitance, voltage_noise
        self.gate_noise, self.observation_noise = gate_noise, observation_noise

    def batch(self, x: Any, every: int) -> Batch:
        """Sequences in which few frames were observed.

        Args:
            x: voltages in mV [batch, count]; the first is that of the first frame.
            every: frames from one observation to the next.

        Returns:
            Sequences of (count - 1) every + 1 frames, the others missing.
        """
        x = jnp.asarray(x, self.current.dtype)
        if x.ndim != 2 or x.shape[1] < 1:
            raise InputError(f"x must have shape [batch, count], got {x.shape}.")
        if not isinstance(every, int) or isinstance(every, bool) or every < 1:
            raise InputError(f"every must be a positive integer, got {every!r:.60}.")
        time = (x.shape[1] - 1) * every + 1
        frames = jnp.zeros((x.shape[0], time, 1), x.dtype).at[:, ::every, 0].set(x)
        seen = jnp.arange(time) % every == 0
        mask = jnp.broadcast_to(seen[None, :, None], frames.shape)
        return Batch(frames, jnp.full(x.shape[0], time, jnp.int32), mask)

    def initial_prior(self, state, context):
        v = jnp.asarray(-65.0, self.current.dtype)
        opening, closing = gate_rates(v)
        mean = jnp.concatenate([v[None], jnp.log(opening) - jnp.log(closing)])
        return dist.Normal(mean, jnp.asarray([25.0, 1.0, 1.0, 1.0], mean.dtype))

    def prior(self, state, context):
        scales = [self.voltage_noise, *[self.gate_noise] * 3]
        return dist.Normal(self.following(state), self.dt**0.5 * jnp.asarray(scales, state.dtype))

    def emission(self, state, latent, context):
        return dist.Normal(latent[:1], jnp.asarray(self.observation_noise, latent.dtype))

    def following(self, latent: Float[Array, " four"]) -> Float[Array, " four"]:
        """The next state without noise.

        Args:
            latent: v in mV, and the logits of n, m and h.

        Returns:
            The same, dt later.
        """
        v, logits = latent[0], latent[1:]
        gates, closed = jax.nn.sigmoid(logits), jax.nn.sigmoid(-logits)
        n, m, h = gates
        open_now = jnp.stack([m**3 * h, n**4, jnp.ones_like(v)])
        conductance, reversal = jnp.asarray((self.sodium, self.potassium, self.leak), v.dtype).T
        conductance = conductance * open_now
        total = jnp.sum(conductance)
        rest = (self.current + jnp.sum(conductance * reversal)) / total
        v = v - (v - rest) * -jnp.expm1(-self.dt * total / self.capacitance)
        opening, closing = gate_rates(latent[0])
        moved = -jnp.expm1(-self.dt * (opening + closing)) / (opening + closing)
        stay = jnp.exp(-self.dt * (opening + closing))
        # x and 1 - x apart, both sums of positive numbers: no difference of nearly equal ones, and nothing to clip.
        logits = jnp.log(moved * opening + stay * gates) - jnp.log(moved * closing + stay * closed)
        return jnp.concatenate([v[None], logits])


def gate_rates(v: Float[Array, ""]) -> tuple[Float[Array, " gate"], Float[Array, " gate"]]:
    """How fast the gates n, m and h open and close.

    Args:
        v: mV.

    Returns:
        α and β of the three, per ms.
    """
    opening = [0.1 * _softened((v + 55) / 10), _softened((v + 35) / 10), 0.07 * jnp.exp(-(v + 50) / 20)]
    closing = [0.125 * jnp.exp(-(v + 65) / 80), 4 * jnp.exp(-(v + 65) / 18), jax.nn.sigmoid((v + 35) / 10)]
    return jnp.stack(opening), jnp.stack(closing)


def _softened(u: Float[Array, ""]) -> Float[Array, ""]:
    """u / (1 - exp(-u)), which is 1 at 0."""
    near = jnp.abs(u) < 1e-2
    away = jnp.where(near, 1.0, u)
    return jnp.where(near, 1 + u / 2 + u**2 / 12, away / -jnp.expm1(-away))
