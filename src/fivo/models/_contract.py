"""The model contract: a sequential latent variable model p with its proposal q.

Methods speak of **one particle of one sequence**; the filter maps them over particles and sequences. The defaults make
a plain state-space model: a bootstrap proposal, and a state that is the previous latent.
"""

from typing import Any, ClassVar, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, PyTree, Shaped

from fivo.batch import Sequence
from fivo.errors import InputError


class SequenceModel(eqx.Module):
    """p(x, z) = ∏ p_t(z_t | history) g_t(x_t | z_t, history) and q(z | x) = ∏ q_t(z_t | history, x).

    A model must define `prior` and `emission`, and `initial_prior` or `initial_state`. `context_t`, `evidence_t` and
    `history_t` are what `encode` returns for step t; by default the inputs u_t, the frame x_t and the frame x_t.
    """

    markov: ClassVar[bool] = False
    """Whether the latents are a Markov chain that the observations do not feed back into; smoothers need it."""
    num_inputs: ClassVar[int] = 0
    """The width of the inputs that a model with its own `encode` takes. One that inherits it takes any, and says how
    wide they are only to be streamed, and only if its first state depends on them."""

    @property
    def causal(self) -> bool:
        """Whether q_t sees no observation after x_t, so that the model can be filtered one frame at a time."""
        return True

    def initial_state(self, context: PyTree) -> PyTree:
        """The state before the first step; with `initial_prior` it may be left out and is zeros shaped like a draw.

        Args:
            context: context_1.

        Returns:
            h_1, any pytree of arrays.
        """
        if not has_initial_prior(self):
            _missing(self, "initial_state(context)", "returns the state before the first step, or initial_prior")
        shapes = jax.eval_shape(lambda: self.initial_prior(None, context).sample(jax.random.key(0)))
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def initial_prior(self, state: PyTree, context: PyTree) -> dist.Distribution:
        """p_1(z_1), where it differs from `prior`.

        Args:
            state: h_1.
            context: context_1.

        Returns:
            The distribution of the first latent.
        """
        _missing(self, "initial_prior(state, context)", "returns the distribution of the first latent")

    def prior(self, state: PyTree, context: PyTree) -> dist.Distribution:
        """p_t(z_t | history).

        Args:
            state: h_t.
            context: context_t, what is known before x_t.

        Returns:
            The distribution of z_t.
        """
        _missing(self, "prior(state, context)", "returns the distribution of z_t given the history")

    def proposal(self, state: PyTree, evidence: PyTree, prior: dist.Distribution) -> dist.Distribution:
        """q_t(z_t | history, x); by default the prior itself: a bootstrap step, whose ratio p/q is not computed.

        Args:
            state: h_t.
            evidence: evidence_t, what q_t may read of the observations.
            prior: p_t, for proposals that start from it.

        Returns:
            The distribution that z_t is drawn from.
        """
        return prior

    def emission(self, state: PyTree, latent: PyTree, context: PyTree) -> dist.Distribution:
        """g_t(x_t | z_t, history). Factorised emissions (no event dimension) admit single missing entries.

        Args:
            state: h_t.
            latent: z_t.
            context: context_t, what is known before x_t.

        Returns:
            The distribution of x_t [dim].
        """
        _missing(self, "emission(state, latent, context)", "returns the distribution of x_t given z_t")

    def advance(self, state: PyTree, latent: PyTree, history: PyTree) -> PyTree:
        """End step t; by default the next state is z_t.

        Args:
            state: h_t.
            latent: z_t.
            history: history_t, what is known after x_t.

        Returns:
            h_{t+1}, of the shapes and types of h_t.
        """
        return latent

    def encode(self, sequence: Sequence) -> tuple[PyTree, PyTree, PyTree]:
        """(context, evidence, history), once per sequence and outside of the loop over time, with T entries each.

        Args:
            sequence: observations [time, dim], length, mask and inputs [time, input].

        Returns:
            `context[t]` from x_1:t-1 and u_1:t, known before x_t; `evidence[t]` from anything; `history[t]` from x_1:t
            and u_1:t. By default the inputs, the observations and the observations.
        """
        return sequence.inputs, sequence.observations, sequence.observations

    def begin(self) -> PyTree:
        """Start the one-frame form of `encode`.

        Returns:
            The memory before the first frame, for `context_next` and `encode_next`.
        """
        return ()

    def context_next(self, memory: PyTree, inputs: Float[Array, " input"] | None) -> PyTree:
        """The one-frame form of `encode`'s context, for streams, simulation and forecasts.

        Args:
            memory: of the frames before.
            inputs: u_t, None if there are none.

        Returns:
            context_t.
        """
        return inputs

    def encode_next(
        self,
        memory: PyTree,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None,
        inputs: Float[Array, " input"] | None,
    ) -> tuple[PyTree, PyTree, PyTree]:
        """The one-frame form of `encode`, which it has to agree with.

        Args:
            memory: of the frames before.
            x: x_t, with zeros at missing entries.
            mask: true where an entry was observed, None where all were.
            inputs: u_t, None if there are none.

        Returns:
            (evidence_t, history_t, memory); a smoothing proposal's evidence_t is None.
        """
        return x, x, memory

    def lookahead(self, sequence: Sequence) -> PyTree:
        """What `twist` reads of the frames that are still to come, once per sequence, with T entries.

        Args:
            sequence: observations [time, dim], length, mask and inputs [time, input].

        Returns:
            `future[t]`, from x_t+1:T and the inputs only.
        """
        _missing(self, "lookahead(sequence)", "returns what its twist reads of the frames to come")

    def twist(self, state: PyTree, latent: PyTree, future: PyTree) -> Float[Array, ""]:
        """How likely the frames to come are given a particle; only `ParticleFilter(..., twisted=True)` reads it.

        Args:
            state: h_t.
            latent: z_t.
            future: future_t, what `lookahead` says of the step.

        Returns:
            log r_t(z_t), a finite guess of log p(x_t+1:T | z_t, history), up to a constant of step and sequence.
        """
        _missing(self, "twist(state, latent, future)", "returns log r_t, to be filtered with a twist")

    @property
    def bare(self) -> "SequenceModel":
        """The model itself, without what may be wrapped around it, such as a twist."""
        return self

    def log_joint(
        self,
        latents: PyTree,
        observations: Any,
        mask: Bool[Array, "time dim"] | None = None,
        inputs: Float[Array, "time input"] | None = None,
    ) -> Float[Array, ""]:
        """log p(x_1:T, z_1:T) of one sequence.

        Args:
            latents: z [time, ...].
            observations: x [time, dim].
            mask: true where an entry was observed, None where all were.
            inputs: u [time, input], None if there are none.

        Returns:
            The log-density, a scalar.
        """
        from fivo.models._trajectories import densities, read

        observations = jnp.asarray(observations)
        sequence = Sequence(observations, jnp.asarray(observations.shape[0], jnp.int32), mask, inputs)
        found = densities(self, read(self, sequence), latents)
        return found.log_prior + found.log_likelihood


def has_initial_prior(model: SequenceModel) -> bool:
    """Whether a model has a separate distribution for the first latent.

    Args:
        model: the model.

    Returns:
        Whether it defines `initial_prior`.
    """
    return type(model.bare).initial_prior is not SequenceModel.initial_prior


def has_twist(model: SequenceModel) -> bool:
    """Whether a model says how likely the frames to come are, given a particle.

    Args:
        model: the model.

    Returns:
        Whether it defines `twist`.
    """
    return type(model).twist is not SequenceModel.twist


def check_kind(model: object) -> None:
    """Refuse anything that is not a model, such as its class.

    Args:
        model: what was given for a model.
    """
    if not isinstance(model, SequenceModel):
        raise InputError(
            f"the model must be an instance of a fivo.models.SequenceModel, got "
            f"{f'the class {model.__name__}' if isinstance(model, type) else type(model).__name__}."
        )


def check_streams(model: SequenceModel) -> None:
    """Refuse a model that cannot be filtered or simulated one frame at a time.

    Args:
        model: the model.
    """
    check_kind(model)
    kind = type(model.bare)
    if kind.encode is not SequenceModel.encode and kind.encode_next is SequenceModel.encode_next:
        _missing(
            model,
            "begin(), context_next(memory, inputs) and encode_next(memory, x, mask, inputs)",
            "do what its own encode does one frame at a time, to be streamed or simulated",
        )


def check_inputs(model: SequenceModel, width: int) -> None:
    """Refuse inputs of a width that the model does not read.

    Args:
        model: the model.
        width: the number of inputs; 0 for none.
    """
    if type(model.bare).encode is not SequenceModel.encode and width != model.num_inputs:
        wanted = f"inputs of width {model.num_inputs}" if model.num_inputs else "no inputs"
        raise InputError(
            f"{type(model).__name__} must be given {wanted}, as its num_inputs says, got "
            f"{f'width {width}' if width else 'no inputs'}."
        )


def _missing(model: SequenceModel, method: str, purpose: str) -> NoReturn:
    raise InputError(f"{type(model).__name__} must define {method}, which {purpose}.")
