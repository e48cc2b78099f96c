"""The linear-Gaussian state-space model, whose evidence, moments and best proposals are known exactly."""

from typing import ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Shaped

from fivo.batch import Batch
from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.models.gaussian import Gaussian, inverse_tril, masked_covariance
from fivo.models.kalman import LinearGaussianParameters, Moments, kalman_filter, kalman_smoother, symmetric

Proposal = Literal["prior", "optimal", "smoothing", "learned"]


class Scale(NamedTuple):
    """A lower-triangular factor L of a covariance and its inverse."""

    scale_tril: Float[Array, "*time n n"]
    whiten: Float[Array, "*time n n"]


class Past(NamedTuple):
    """What is known before x_t: the scales of z_t (the first step has its own) and of x_t."""

    latent: Scale
    observation: Scale


class Information(NamedTuple):
    """q_t = N(m + S (η - Λ m), S) around the prior mean m: S⁻¹ = prior precision + Λ, with its factors."""

    precision: Float[Array, "*time state state"]
    shift: Float[Array, "*time state"]
    covariance: Float[Array, "*time state state"]
    scale: Scale


class Covariance(eqx.Module):
    """A covariance matrix L Lᵀ as free parameters: the entries of L below its diagonal, and the logs of those on it."""

    free: Float[Array, "n n"]

    @classmethod
    def of(cls, matrix: Float[Array, "n n"]) -> "Covariance":
        """The parameters of a positive definite matrix."""
        scale_tril = jnp.linalg.cholesky(matrix)
        return cls(jnp.tril(scale_tril, -1) + jnp.diag(jnp.log(jnp.diagonal(scale_tril))))

    @property
    def scale_tril(self) -> Float[Array, "n n"]:
        """L; its diagonal is positive whatever the parameters are."""
        return jnp.tril(self.free, -1) + jnp.diag(jnp.exp(jnp.diagonal(self.free)))

    @property
    def scale(self) -> Scale:
        """L and its inverse."""
        scale_tril = self.scale_tril
        return Scale(scale_tril, inverse_tril(scale_tril))

    @property
    def matrix(self) -> Float[Array, "n n"]:
        """L Lᵀ."""
        scale_tril = self.scale_tril
        return scale_tril @ scale_tril.T


class LearnedProposal(eqx.Module):
    """q_t = N(m + G (x_t - C m) + b, L Lᵀ) with free G, b and L."""

    gain: Float[Array, "state dim"]
    bias: Float[Array, " state"]
    scale_tril: Float[Array, "state state"]


class LinearGaussian(SequenceModel):
    """z_1 ~ N(m, P), z_t = A z_{t-1} + N(0, Q), x_t = C z_t + N(0, R); missing entries are marginalised exactly.

    Proposals: `prior` (bootstrap), `optimal` p(z_t | z_{t-1}, x_t), `smoothing` p(z_t | z_{t-1}, x_t:T), `learned`.
    The covariances are stored as free Cholesky factors, so that any gradient step keeps them positive definite.
    """

    transition_matrix: Float[Array, "state state"]
    transition_noise: Covariance
    emission_matrix: Float[Array, "dim state"]
    emission_noise: Covariance
    initial_mean: Float[Array, " state"]
    initial_noise: Covariance
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
        _check(given, proposal)
        arrays = [jnp.asarray(value) for value in given]
        dtype = jnp.result_type(*arrays, jnp.float32)
        a, q, c, r, m, p = (value.astype(dtype) for value in arrays)
        self.transition_matrix, self.emission_matrix, self.initial_mean = a, c, m
        self.transition_noise, self.emission_noise, self.initial_noise = (Covariance.of(v) for v in (q, r, p))
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
    def causal(self) -> bool:
        return self.proposal_kind != "smoothing"

    def encode(self, observations, mask, length):
        self._check_frames(observations)
        time = observations.shape[0]
        past = jax.vmap(self._past)(jnp.arange(time + 1) == 0)
        if self.proposal_kind in ("prior", "learned"):
            return past, (observations, mask)
        active = jnp.arange(time) < length
        likelihood = jax.vmap(self._likelihood, in_axes=(0, None if mask is None else 0, 0))(observations, mask, active)
        if self.proposal_kind == "smoothing":
            likelihood = self._backward_information(*likelihood)
        scales = jax.tree.map(lambda leaf: leaf[:-1], past.latent)
        return past, jax.vmap(information)(scales, *likelihood)

    def initial_memory(self):
        first = jnp.asarray(True)
        return self._past(first), first

    def encode_next(self, memory, x, mask):
        self._check_frames(x)
        past_next, later = self._past(jnp.asarray(False)), jnp.asarray(False)
        if self.proposal_kind == "smoothing":
            return None, past_next, later
        if self.proposal_kind in ("prior", "learned"):
            return (x, mask), past_next, later
        return information(self._past(memory).latent, *self._likelihood(x, mask, jnp.asarray(True))), past_next, later

    def initial_state(self, past):
        return self.initial_mean

    def prior(self, state, past):
        return Gaussian(state, *past.latent)

    def proposal(self, state, full, prior):
        if self.proposal_kind == "prior":
            return prior
        if self.learned is not None:
            x, mask = full
            deviation = x - self.emission_matrix @ state
            deviation = deviation if mask is None else jnp.where(mask, deviation, 0)
            # Gradients also reach the entries above the diagonal, which sampling would use and scoring would not.
            scale_tril = jnp.tril(self.learned.scale_tril)
            return Gaussian(state + self.learned.gain @ deviation + self.learned.bias, scale_tril)
        return Gaussian(state + full.covariance @ (full.shift - full.precision @ state), *full.scale)

    def emission(self, state, latent, past):
        return Gaussian(self.emission_matrix @ latent, *past.observation)

    def advance(self, state, latent, past):
        return self.transition_matrix @ latent

    def log_evidence(self, batch: Batch) -> Float[Array, " batch"]:
        """The exact log p(x_1:T) of every sequence, by the Kalman filter."""
        return jnp.sum(self._kalman(batch)[0], axis=1)

    def filtered(self, batch: Batch) -> Moments:
        """The exact moments of p(z_t | x_1:t), [batch, time, ...]."""
        return self._kalman(batch)[1]

    def smoothed(self, batch: Batch) -> Moments:
        """The exact moments of p(z_t | x_1:T), [batch, time, ...]."""
        return _smoother(self.parameters, self.filtered(batch), batch.lengths)

    @property
    def parameters(self) -> LinearGaussianParameters:
        """(A, Q, C, R, m, P)."""
        return LinearGaussianParameters(*(getattr(self, name) for name in LinearGaussianParameters._fields))

    def _kalman(self, batch: Batch) -> tuple[Float[Array, "batch time"], Moments]:
        observations = batch.observations.astype(self.initial_mean.dtype)
        return _filter(self.parameters, observations, batch.mask, batch.lengths)

    def _check_frames(self, x: Shaped[Array, "*time dim"]) -> None:
        dim = self.emission_matrix.shape[0]
        if x.shape[-1] != dim:
            raise InputError(f"the observations have {x.shape[-1]} entries per frame where the model emits {dim}.")

    def _past(self, first: Bool[Array, ""]) -> Past:
        initial, transition = self.initial_noise.scale, self.transition_noise.scale
        latent = jax.tree.map(lambda start, later: jnp.where(first, start, later), initial, transition)
        return Past(latent, self.emission_noise.scale)

    def _likelihood(
        self, x: Float[Array, " dim"], mask: Bool[Array, " dim"] | None, active: Bool[Array, ""]
    ) -> tuple[Float[Array, "state state"], Float[Array, " state"]]:
        """(Λ, η) of p(x_t | z_t) ∝ exp(-z'Λz/2 + η'z), zero where nothing was observed."""
        emission, white = self.emission_matrix, self.emission_noise.scale.whiten
        if mask is not None:
            emission = jnp.where(mask[:, None], emission, 0)
            white = factor(masked_covariance(self.emission_covariance, mask)).whiten
        half = white @ emission
        return jnp.where(active, half.T @ half, 0), jnp.where(active, half.T @ (white @ x), 0)

    def _backward_information(
        self, precisions: Float[Array, "time state state"], shifts: Float[Array, "time state"]
    ) -> tuple[Float[Array, "time state state"], Float[Array, "time state"]]:
        """(Λ_t, η_t) of p(x_t:T | z_t): the two-filter recursion, from the end."""
        a = self.transition_matrix
        scale = self.transition_noise.scale

        def step(carry, inputs):
            later = information(scale, *carry)
            keep = jnp.eye(a.shape[0], dtype=a.dtype) - later.precision @ later.covariance
            precision = symmetric(inputs[0] + a.T @ keep @ later.precision @ a)
            shift = inputs[1] + a.T @ keep @ later.shift
            return (precision, shift), (precision, shift)

        nothing = (jnp.zeros_like(precisions[0]), jnp.zeros_like(shifts[0]))
        return lax.scan(step, nothing, (precisions, shifts), reverse=True)[1]


def factor(covariance: Float[Array, "n n"]) -> Scale:
    """The lower-triangular factor of a covariance and its inverse."""
    scale_tril = jnp.linalg.cholesky(covariance)
    return Scale(scale_tril, inverse_tril(scale_tril))


def information(prior: Scale, precision: Float[Array, "state state"], shift: Float[Array, " state"]) -> Information:
    """The Gaussian with the prior's precision plus Λ and shifted by η."""
    spread = prior.scale_tril
    inner = jnp.eye(shift.shape[0], dtype=shift.dtype) + spread.T @ precision @ spread
    half = factor(symmetric(inner)).whiten @ spread.T
    covariance = half.T @ half
    return Information(precision, shift, covariance, factor(covariance))


@jax.jit
def _filter(parameters, observations, mask, lengths):
    in_axes = (None, 0, None if mask is None else 0, 0)
    return jax.vmap(kalman_filter, in_axes=in_axes)(parameters, observations, mask, lengths)


@jax.jit
def _smoother(parameters, filtered, lengths):
    return jax.vmap(kalman_smoother, in_axes=(None, 0, 0))(parameters, filtered, lengths)


def _check(given: LinearGaussianParameters, proposal: str) -> None:
    if proposal not in get_args(Proposal):
        raise InputError(f"got proposal={proposal!r} where one of {', '.join(get_args(Proposal))} was expected.")
    dim, state = np.shape(given.emission_matrix) if np.ndim(given.emission_matrix) == 2 else (0, 0)
    shapes = [(state, state), (state, state), (dim, state), (dim, dim), (state,), (state, state)]
    for name, value, shape in zip(given._fields, given, shapes, strict=True):
        if np.shape(value) != shape or 0 in shape:
            raise InputError(
                f"{name} has shape {np.shape(value)} where {shape} was expected from emission_matrix [dim, state] of "
                f"shape {np.shape(given.emission_matrix)}."
            )
        if isinstance(value, Tracer):
            continue
        if not np.isfinite(np.asarray(value, float)).all():
            raise InputError(f"{name} holds NaN or infinite values; give finite numbers.")
        if "covariance" in name:
            _check_covariance(name, np.asarray(value, float))


def _check_covariance(name: str, value: np.ndarray) -> None:
    symmetric_enough = np.allclose(value, value.T, rtol=1e-5, atol=0)
    if not symmetric_enough or np.linalg.eigvalsh(value).min() <= 0:
        reason = "not symmetric" if not symmetric_enough else "not positive definite"
        raise InputError(f"{name} is {reason}; give a symmetric matrix with positive eigenvalues.")
