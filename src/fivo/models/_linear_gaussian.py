"""The linear-Gaussian state-space model, whose evidence, moments and best proposals are known exactly."""

from typing import Any, ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from fivo.batch import Sequence, as_batch, over_sequences
from fivo.distributions import Gaussian, masked_covariance
from fivo.errors import InputError
from fivo.models._contract import SequenceModel
from fivo.models._covariance import Covariance, Information, factor, posterior
from fivo.models._emissions import check_frames
from fivo.models._information import backward_information, information_ahead
from fivo.models._kalman import (
    KalmanState,
    KalmanStep,
    LinearGaussianParameters,
    Moments,
    check_parameters,
    kalman_filter,
    kalman_smoother,
    kalman_update,
    symmetric,
)
from fivo.models._trajectories import shown

Proposal = Literal["prior", "optimal", "smoothing", "learned"]


class LearnedProposal(eqx.Module):
    """q_t = N(m + G (x_t - C m) + b, L Lᵀ) around the prior's mean m, with free G, b and L."""

    gain: Float[Array, "state dim"]
    bias: Float[Array, " state"]
    scale_tril: Float[Array, "state state"]


class Deviation(NamedTuple):
    """x_t less what the inputs add to it, and which of its entries were observed."""

    x: Float[Array, "*time dim"]
    mask: Bool[Array, "*time dim"] | None


class LinearGaussian(SequenceModel):
    """z_1 ~ N(m, P), z_t = A z_{t-1} + B u_t + N(0, Q), x_t = C z_t + D u_t + N(0, R), with missing entries.

    Args:
        transition_matrix: A [state, state].
        transition_covariance: Q [state, state].
        emission_matrix: C [dim, state].
        emission_covariance: R [dim, dim].
        initial_mean: m [state].
        initial_covariance: P [state, state].
        input_matrix: B [state, input], for a model with inputs; the first latent does not see u_1.
        emission_input_matrix: D [dim, input].
        proposal: `prior` (bootstrap), `optimal` p(z_t | z_{t-1}, x_t), `smoothing` p(z_t | z_{t-1}, x_t:T) or
            `learned`.

    The covariances are stored as free Cholesky factors, so that any gradient step keeps them positive definite.
    """

    transition_matrix: Float[Array, "state state"]
    transition_noise: Covariance
    emission_matrix: Float[Array, "dim state"]
    emission_noise: Covariance
    initial_mean: Float[Array, " state"]
    initial_noise: Covariance
    input_matrix: Float[Array, "state input"] | None
    emission_input_matrix: Float[Array, "dim input"] | None
    learned: LearnedProposal | None
    proposal_kind: Proposal = eqx.field(static=True)

    markov: ClassVar[bool] = True

    def __init__(
        self,
        *,
        transition_matrix,
        transition_covariance,
        emission_matrix,
        emission_covariance,
        initial_mean,
        initial_covariance,
        input_matrix=None,
        emission_input_matrix=None,
        proposal: Proposal = "prior",
    ) -> None:
        given = LinearGaussianParameters(
            transition_matrix,
            transition_covariance,
            emission_matrix,
            emission_covariance,
            initial_mean,
            initial_covariance,
        )
        if proposal not in get_args(Proposal):
            raise InputError(f"proposal must be one of {', '.join(get_args(Proposal))}, got {proposal!r}.")
        check_parameters(given)
        arrays = [jnp.asarray(value) for value in given]
        dtype = jnp.result_type(*arrays, jnp.float32)
        a, q, c, r, m, p = (value.astype(dtype) for value in arrays)
        self.transition_matrix, self.emission_matrix, self.initial_mean = a, c, m
        self.transition_noise, self.emission_noise, self.initial_noise = (Covariance.of(v) for v in (q, r, p))
        self.input_matrix = _input_matrix("input_matrix", input_matrix, a.shape[0], dtype)
        self.emission_input_matrix = _input_matrix("emission_input_matrix", emission_input_matrix, c.shape[0], dtype)
        widths = {matrix.shape[1] for matrix in self._input_matrices}
        if len(widths) > 1:
            raise InputError(f"input_matrix and emission_input_matrix must have as many columns, got {sorted(widths)}.")
        self.proposal_kind = proposal
        self.learned = None
        if proposal == "learned":
            self.learned = LearnedProposal(
                jnp.zeros_like(self.emission_matrix.T),
                jnp.zeros_like(self.initial_mean),
                self.transition_noise.scale_tril,
            )

    @property
    def transition_covariance(self) -> Float[Array, "state state"]:
        """Q."""
        return self.transition_noise.matrix

    @property
    def emission_covariance(self) -> Float[Array, "dim dim"]:
        """R."""
        return self.emission_noise.matrix

    @property
    def initial_covariance(self) -> Float[Array, "state state"]:
        """P."""
        return self.initial_noise.matrix

    @property
    def parameters(self) -> LinearGaussianParameters:
        """(A, Q, C, R, m, P)."""
        return LinearGaussianParameters(*(getattr(self, name) for name in LinearGaussianParameters._fields))

    @property
    def num_inputs(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The width of u_t."""
        return next((matrix.shape[1] for matrix in self._input_matrices), 0)

    @property
    def causal(self) -> bool:
        return self.proposal_kind != "smoothing"

    def encode(self, sequence):
        check_frames(sequence.observations, self.emission_matrix.shape[0])
        if self.proposal_kind == "prior":
            return sequence.inputs, None, None
        seen = Deviation(self._deviation(sequence.observations, sequence.inputs), sequence.mask)
        if self.proposal_kind == "learned":
            return sequence.inputs, seen, None
        likelihood = self._likelihoods(sequence, seen)
        if self.proposal_kind == "smoothing":
            drift = self._drift(sequence.inputs, sequence.observations.shape[0])
            likelihood = backward_information(
                self.transition_matrix, self.transition_noise.scale_tril, likelihood, drift
            )
        return sequence.inputs, likelihood, None

    def exact_lookahead(self, sequence: Sequence) -> Information:
        """The exact lookahead of every step, by the two-filter recursion.

        Args:
            sequence: observations [time, dim], length, mask and inputs [time, input].

        Returns:
            p(x_t+1:T | z_t) as a function of z_t for every step, up to a factor of the step.
        """
        seen = Deviation(self._deviation(sequence.observations, sequence.inputs), sequence.mask)
        drift = self._drift(sequence.inputs, sequence.observations.shape[0])
        likelihood, scale_tril = self._likelihoods(sequence, seen), self.transition_noise.scale_tril
        return information_ahead(self.transition_matrix, scale_tril, likelihood, drift)

    def log_lookahead(self, latent: Float[Array, " state"], future: Information) -> Float[Array, ""]:
        """The exact lookahead of one latent.

        Args:
            latent: z_t [state].
            future: what `exact_lookahead` says of the step.

        Returns:
            log p(x_t+1:T | z_t), up to a constant of the step.
        """
        return future.shift @ latent - 0.5 * (latent @ (future.precision @ latent))

    def encode_next(self, memory, x, mask, inputs):
        check_frames(x, self.emission_matrix.shape[0])
        seen = Deviation(self._deviation(x, inputs), mask)
        if self.proposal_kind in ("prior", "smoothing"):
            return None, None, memory
        return seen if self.proposal_kind == "learned" else self._likelihood(seen), None, memory

    def initial_prior(self, state, context):
        return Gaussian(self.initial_mean, *self.initial_noise.scale)

    def prior(self, state, context):
        mean = state if self.input_matrix is None else state + self.input_matrix @ context
        return Gaussian(mean, *self.transition_noise.scale)

    def proposal(self, state, evidence, prior):
        if self.proposal_kind == "prior":
            return prior
        if self.learned is None:
            narrowed = posterior(prior.scale_tril, evidence)  # pyright: ignore[reportAttributeAccessIssue]
            return Gaussian(narrowed.mean(prior.loc, evidence), *narrowed.scale)  # pyright: ignore[reportAttributeAccessIssue]
        mean = prior.loc  # pyright: ignore[reportAttributeAccessIssue]
        deviation = evidence.x - self.emission_matrix @ mean
        deviation = deviation if evidence.mask is None else jnp.where(evidence.mask, deviation, 0)
        # Gradients also reach the entries above the diagonal, which sampling would use and scoring would not.
        return Gaussian(mean + self.learned.gain @ deviation + self.learned.bias, jnp.tril(self.learned.scale_tril))

    def emission(self, state, latent, context):
        mean = self.emission_matrix @ latent
        if self.emission_input_matrix is not None:
            mean = mean + self.emission_input_matrix @ context
        return Gaussian(mean, *self.emission_noise.scale)

    def advance(self, state, latent, history):
        return self.transition_matrix @ latent

    def log_evidence(self, batch: Any) -> Float[Array, " batch"]:
        """The exact log p(x_1:T) of every sequence, by the Kalman filter.

        Args:
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.

        Returns:
            The log-evidence [batch].
        """
        return jnp.sum(_kalman(self, as_batch(batch))[0], axis=1)

    def log_increments(self, batch: Any) -> Float[Array, "batch time"]:
        """The exact log p(x_t | x_1:t-1) of every step.

        Args:
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.

        Returns:
            The increments [batch, time]; zero past a sequence's end.
        """
        return _kalman(self, as_batch(batch))[0]

    def filtered(self, batch: Any) -> Moments:
        """The exact moments of p(z_t | x_1:t).

        Args:
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.

        Returns:
            Means and covariances [batch, time, ...].
        """
        return _kalman(self, as_batch(batch))[1]

    def smoothed(self, batch: Any) -> Moments:
        """The exact moments of p(z_t | x_1:T).

        Args:
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.

        Returns:
            Means and covariances [batch, time, ...].
        """
        return _smoother(self, as_batch(batch))

    def kalman_begin(self) -> KalmanState:
        """Start the exact filter.

        Returns:
            Its state before the first frame.
        """
        return KalmanState(self.initial_mean, symmetric(self.initial_covariance), jnp.zeros((), jnp.int32))

    def kalman_step(
        self,
        state: KalmanState,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"] | None = None,
        inputs: Float[Array, " input"] | None = None,
    ) -> tuple[KalmanState, KalmanStep]:
        """Take one frame into the exact filter; the numbers are those of `log_increments` and `filtered`.

        Args:
            state: from `kalman_begin` or the last `kalman_step`.
            x: x_t [dim].
            mask: true where an entry was observed; None where all were.
            inputs: u_t [input], for models that read inputs.

        Returns:
            The state for the next frame, and what was expected of this one, how likely it was, and p(z_t | x_1:t).
        """
        drift = self._drift(None if inputs is None else inputs[None], 1)[0]
        mean = jnp.where(state.step > 0, state.mean + drift, state.mean)
        seen = jnp.ones(jnp.shape(x), bool) if mask is None else mask
        deviation = jnp.where(seen, self._deviation(x, inputs), 0)
        made = kalman_update(self.parameters, mean, state.covariance, deviation, seen)
        shift = -self._deviation(jnp.zeros_like(deviation), inputs)  # D u
        a = self.transition_matrix
        following = symmetric(a @ made.covariance @ a.T + self.transition_covariance)
        made = made._replace(expected=made.expected + shift)
        return KalmanState(a @ made.mean, following, state.step + 1), made

    @property
    def _input_matrices(self) -> list[Array]:
        return [m for m in (self.input_matrix, self.emission_input_matrix) if m is not None]

    def _deviation(
        self, x: Float[Array, "*time dim"], inputs: Float[Array, "*time input"] | None
    ) -> Float[Array, "*time dim"]:
        """x less D u."""
        x = jnp.asarray(x, self.initial_mean.dtype)
        if self.emission_input_matrix is None or inputs is None:
            return x
        return x - inputs @ self.emission_input_matrix.T

    def _drift(self, inputs: Float[Array, "time input"] | None, time: Any) -> Float[Array, "time state"]:
        """B u."""
        if self.input_matrix is None or inputs is None:
            return jnp.zeros((time, self.initial_mean.shape[0]), self.initial_mean.dtype)
        return inputs @ self.input_matrix.T

    def _likelihood(self, seen: Deviation) -> Information:
        """p(x_t | z_t) as a function of z_t."""
        emission, white = self.emission_matrix, self.emission_noise.scale.whiten
        x = seen.x
        if seen.mask is not None:
            emission = jnp.where(seen.mask[:, None], emission, 0)
            white = factor(masked_covariance(self.emission_covariance, seen.mask)).whiten
            x = jnp.where(seen.mask, x, 0)
        half = white @ emission
        return Information(half.T @ half, half.T @ (white @ x))

    def _likelihoods(self, sequence: Sequence, seen: Deviation) -> Information:
        """p(x_t | z_t) as a function of z_t for every step; one past the sequence's end."""
        likelihood = jax.vmap(self._likelihood, in_axes=(Deviation(0, None if seen.mask is None else 0),))(seen)  # pyright: ignore[reportArgumentType]
        active = jnp.arange(sequence.observations.shape[0]) < sequence.length
        return jax.tree.map(lambda leaf: jnp.where(active.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, 0), likelihood)


@jax.jit
def _kalman(model, batch):
    def one(sequence: Sequence):
        sequence = shown(model, sequence)
        x = model._deviation(sequence.observations, sequence.inputs)
        drift = model._drift(sequence.inputs, x.shape[0])
        return kalman_filter(model.parameters, x, sequence.mask, sequence.length, drift)

    return over_sequences(one, batch)


@jax.jit
def _smoother(model, batch):
    def one(sequence: Sequence, filtered: Moments):
        sequence = shown(model, sequence)
        drift = model._drift(sequence.inputs, sequence.observations.shape[0])
        return kalman_smoother(model.parameters, filtered, sequence.length, drift)

    return over_sequences(one, batch, _kalman(model, batch)[1])


def _input_matrix(name: str, value: Any, rows: int, dtype: jnp.dtype) -> Array | None:
    if value is None:
        return None
    matrix = jnp.asarray(value)
    if matrix.ndim != 2 or matrix.shape[0] != rows or matrix.shape[1] < 1:
        raise InputError(f"{name} must have shape ({rows}, number of inputs), got {matrix.shape}.")
    return matrix.astype(dtype)
