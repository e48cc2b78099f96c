"""Families of proposals for any state-space model whose prior is normal, in place of the model's own q."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from fivo.batch import Sequence
from fivo.distributions import Gaussian
from fivo.errors import InputError
from fivo.models._contract import SequenceModel, has_twist
from fivo.models._covariance import Information, posterior
from fivo.models._emissions import Emission
from fivo.models._layers import LSTM, MLP
from fivo.models._reading import DataEncoder, check_sizes
from fivo.models._wrapped import Wrapped


class Proposal(eqx.Module):
    """A family of proposals q_t(z_t | h_t, x) for some kind of model.

    Subclasses define `__call__`, and `encode` with its one-frame form `begin` and `encode_next` where they read
    something else than x_t. A family with arrays of its own is trained by the bound, with the rest of the model.
    """

    causal: ClassVar[bool] = True
    """Whether q_t sees no observation after x_t."""

    def check(self, model: SequenceModel) -> None:
        """Refuse, with `InputError`, a model that the family has no proposal for.

        Args:
            model: the model.
        """

    def encode(self, sequence: Sequence) -> PyTree:
        """What the proposal reads of a sequence; by default its frames.

        Args:
            sequence: observations [time, dim], with zeros at missing entries, length, mask and inputs [time, input].

        Returns:
            evidence[t], a pytree with T entries.
        """
        return sequence.observations

    def begin(self) -> PyTree:
        """Start the one-frame form of `encode`.

        Returns:
            The memory before the first frame.
        """
        return ()

    def encode_next(
        self, memory: PyTree, x: Shaped[Array, " dim"], mask: Bool[Array, " dim"] | None
    ) -> tuple[PyTree, PyTree]:
        """The one-frame form of `encode`, for streams and simulation.

        Args:
            memory: of the frames before.
            x: x_t, with zeros at missing entries.
            mask: true where an entry was observed, None where all were.

        Returns:
            evidence_t, None for a proposal that is not causal, and the next memory.
        """
        return x, memory

    def __call__(self, state: PyTree, evidence: PyTree, prior: dist.Distribution) -> dist.Distribution:
        """q_t.

        Args:
            state: h_t.
            evidence: evidence_t.
            prior: p_t.

        Returns:
            The distribution that z_t is drawn from.
        """
        raise InputError(f"{type(self).__name__} must define __call__(state, evidence, prior).")


class Proposed(Wrapped):
    """A model as it is, with another proposal than its own.

    Args:
        model: any model that has no twist yet; `Twisted` goes around a `Proposed`.
        proposing: a family of proposals that goes with it, such as `LinearProposal(...)`.

    The model with its own proposal is `.model`.
    """

    proposing: Proposal

    def __check_init__(self) -> None:
        if not isinstance(self.proposing, Proposal):
            raise InputError(f"the proposal must be a fivo.models.Proposal, got {type(self.proposing).__name__}.")
        if has_twist(self.model):
            raise InputError("a Proposed must be made of a model without a twist; write Twisted(Proposed(...), twist).")
        self.proposing.check(self.model)

    @property
    def causal(self) -> bool:
        return self.proposing.causal

    def encode(self, sequence: Sequence) -> tuple[PyTree, PyTree, PyTree]:
        context, _, history = self.model.encode(sequence)
        return context, self.proposing.encode(sequence), history

    def begin(self) -> PyTree:
        return self.model.begin(), self.proposing.begin()

    def context_next(self, memory: PyTree, inputs: Float[Array, " input"] | None) -> PyTree:
        return self.model.context_next(memory[0], inputs)

    def encode_next(
        self,
        memory: PyTree,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[PyTree, PyTree, PyTree]:
        of_model, of_proposal = memory
        _, history, of_model = self.model.encode_next(of_model, x, mask, inputs)
        evidence, of_proposal = self.proposing.encode_next(of_proposal, x, mask)
        return evidence, history, (of_model, of_proposal)

    def proposal(self, state: PyTree, evidence: PyTree, prior: dist.Distribution) -> dist.Distribution:
        return self.proposing(state, evidence, prior)


class Factor(NamedTuple):
    """A normal factor for every entry of z_t; zero precision means no factor."""

    mean: Float[Array, "*time latent"]
    precision: Float[Array, "*time latent"]


class ProductProposal(Proposal):
    """q_t ∝ p_t(z_t | h_t) N(z_t; m_t, diag(s_t²)), with free m_t and s_t of every step (Lawson et al. 2022).

    Args:
        num_steps: T, for how many steps there are factors; q_t is the prior after them.
        mean: m_t to begin with, a number or [latent].
        scale: s_t to begin with, positive, a number or [latent].
        latents: the dimension of z_t.

    The factors belong to the steps, not to what is observed: this is a proposal for one sequence, or for sequences that
    are alike.
    """

    mean: Float[Array, "time latent"]
    log_scale: Float[Array, "time latent"]

    def __init__(self, num_steps: int, latents: int, *, mean: Any = 0.0, scale: Any = 1.0) -> None:
        for name, value in (("num_steps", num_steps), ("latents", latents)):
            _check_count(name, value)
        dtype = jnp.result_type(jnp.asarray(mean), jnp.asarray(scale), jnp.float32)
        shape = (num_steps, latents)
        self.mean = jnp.broadcast_to(jnp.asarray(mean, dtype), shape)
        self.log_scale = jnp.broadcast_to(jnp.log(jnp.asarray(scale, dtype)), shape)

    def encode(self, sequence: Sequence) -> Factor:
        return self._at(jnp.arange(sequence.observations.shape[0]))

    def begin(self) -> Int[Array, ""]:
        return jnp.zeros((), jnp.int32)

    def encode_next(self, memory, x, mask):
        return self._at(memory), memory + 1

    def _at(self, steps: Int[Array, "*time"]) -> Factor:
        inside = (steps < self.mean.shape[0])[..., None]
        place = jnp.minimum(steps, self.mean.shape[0] - 1)
        return Factor(jnp.where(inside, self.mean[place], 0), jnp.where(inside, jnp.exp(-2 * self.log_scale[place]), 0))

    def __call__(self, state: PyTree, evidence: Factor, prior: dist.Distribution) -> dist.Distribution:
        normal = _normal(prior)
        if isinstance(normal, Gaussian):
            seen = Information(jnp.diag(evidence.precision), evidence.precision * evidence.mean)
            narrowed = posterior(normal.scale_tril, seen)
            return Gaussian(narrowed.mean(normal.loc, seen), *narrowed.scale)
        loc, scale = _of_entries(normal)
        gain = scale**2 * evidence.precision
        return dist.Normal(loc + gain / (1 + gain) * (evidence.mean - loc), scale / jnp.sqrt(1 + gain))


class LinearProposal(Proposal):
    """q_t = N(m + A m + B x_t + c, diag(e^d)² Σ) around the prior's N(m, Σ), with free A, B, c and d.

    Args:
        latents: the dimension of z_t.
        dim: the dimension of x_t.
        num_steps: T, for parameters of every step; those after the T-th take the last. None for the same at all steps.
        dtype: of the parameters.

    It begins as the prior. A missing entry of x_t adds nothing.
    """

    slope: Float[Array, "*time latent latent"]
    gain: Float[Array, "*time latent dim"]
    offset: Float[Array, "*time latent"]
    log_scale: Float[Array, "*time latent"]

    def __init__(self, latents: int, dim: int, num_steps: int | None = None, *, dtype: Any = jnp.float32) -> None:
        counts = {"latents": latents, "dim": dim} | ({} if num_steps is None else {"num_steps": num_steps})
        for name, value in counts.items():
            _check_count(name, value)
        lead = () if num_steps is None else (num_steps,)
        self.slope = jnp.zeros((*lead, latents, latents), dtype)
        self.gain = jnp.zeros((*lead, latents, dim), dtype)
        self.offset, self.log_scale = (jnp.zeros((*lead, latents), dtype) for _ in range(2))

    def encode(self, sequence: Sequence) -> tuple[Array, Int[Array, " time"]]:
        x = sequence.observations
        return x.astype(self.gain.dtype), jnp.arange(x.shape[0])

    def begin(self) -> Int[Array, ""]:
        return jnp.zeros((), jnp.int32)

    def encode_next(self, memory, x, mask):
        return (x.astype(self.gain.dtype), memory), memory + 1

    def __call__(self, state: PyTree, evidence: Any, prior: dist.Distribution) -> dist.Distribution:
        x, step = evidence
        steps = self.offset.shape[:-1]
        now = jax.tree.map(lambda leaf: leaf[jnp.minimum(step, steps[0] - 1)], self) if steps else self
        normal = _normal(prior)
        return _moved(normal, now.slope @ normal.loc + now.gain @ x + now.offset, now.log_scale)


class ResidualProposal(Proposal):
    """q_t = N(m + S f, diag(e^g)² Σ) around the prior's N(m, Σ), S its scale, with a network (f, g) of m and x_t.

    Args:
        latents: the dimension of z_t.
        frames: the emission that says how a frame is read, such as `NormalEmission(mean, deviation)` of the data.
        hidden: units of every network.
        smoothing: read x_t:T, by an LSTM run backwards, and not x_t alone.
        key: a random key for the initial weights.

    It begins as the prior, and learns by how many standard deviations of the prior to move and to widen it.
    """

    data_encoder: DataEncoder
    backward: LSTM | None
    network: MLP
    frames: Emission

    def __init__(
        self, latents: int, frames: Emission, hidden: int, *, smoothing: bool = False, key: Key[Array, ""]
    ) -> None:
        _check_count("latents", latents)
        check_sizes(hidden, 0)
        keys = jax.random.split(key, 3)
        self.frames = frames
        self.data_encoder = DataEncoder(frames, hidden, gaps=True, key=keys[0])
        self.backward = LSTM((hidden,), hidden, key=keys[1]) if smoothing else None
        network = MLP((latents, hidden), hidden, 2 * latents, key=keys[2])
        self.network = eqx.tree_at(lambda n: n.output.weights[0], network, replace_fn=jnp.zeros_like)

    @property
    def causal(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.backward is None

    def encode(self, sequence: Sequence) -> Float[Array, "time hidden"]:
        features = self.data_encoder(self.frames, sequence.observations, sequence.mask)
        if self.backward is not None:
            gates = self.backward.gates
            active = jnp.arange(features.shape[0]) < sequence.length
            features = self.backward.backward(gates.biased(gates.part(0, features)), active)
        return self.network.hidden.part(1, features)

    def encode_next(self, memory, x, mask):
        if self.backward is not None:
            return None, memory
        return self.network.hidden.part(1, self.data_encoder(self.frames, x, mask)), memory

    def __call__(self, state: PyTree, evidence: Float[Array, " hidden"], prior: dist.Distribution) -> dist.Distribution:
        normal = _normal(prior)
        layer = self.network.hidden
        shift, log_scale = jnp.split(self.network.finish(layer.biased(layer.part(0, normal.loc) + evidence)), 2)
        whole = normal.scale_tril @ shift if isinstance(normal, Gaussian) else normal.scale * shift
        return _moved(normal, whole, log_scale)


def _normal(prior: Any) -> Any:
    """The prior, if it is one that these families can move."""
    if not isinstance(prior, dist.Normal | Gaussian) or len(prior.batch_shape + prior.event_shape) != 1:
        raise InputError(
            f"the prior must be a Normal or a Gaussian of shape [latent] for this proposal, got "
            f"{type(prior).__name__} of shape {tuple(prior.batch_shape + prior.event_shape)}."
        )
    return prior


def _of_entries(prior: Any) -> tuple[Float[Array, " latent"], Float[Array, " latent"]]:
    """Mean and scale of every entry; numpyro keeps a scale that all share as one number."""
    return prior.loc, jnp.broadcast_to(prior.scale, jnp.shape(prior.loc))


def _moved(prior: Any, shift: Float[Array, " latent"], log_scale: Float[Array, " latent"]) -> dist.Distribution:
    """The prior with its mean shifted, and with the deviation of every entry changed by a factor."""
    if isinstance(prior, Gaussian):
        factor = jnp.exp(log_scale)
        return Gaussian(prior.loc + shift, factor[:, None] * prior.scale_tril, prior.whiten / factor[None, :])
    loc, scale = _of_entries(prior)
    return dist.Normal(loc + shift, scale * jnp.exp(log_scale))


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a positive integer, got {value!r:.60}.")
