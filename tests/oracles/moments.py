"""Exact moments of evidence estimators, in NumPy and without the package's filters.

Moments are relative: E[(p̂ / p)^k], so that the first is one and the second is one plus the relative variance.
"""

import numpy as np

from fivo.models import DiscreteHMM, LinearGaussian


class DenseGaussian:
    """The joint Gaussian of a linear-Gaussian model's trajectory z and its observations x, as whole matrices.

    With inputs [time, input], of which u_1 moves x_1 but not z_1.
    """

    def __init__(self, model: LinearGaussian, num_steps: int, inputs: np.ndarray | None = None) -> None:
        a, q, c, r, m, p = (np.asarray(value, np.float64) for value in model.parameters)
        state = len(m)
        powers = [np.eye(state)]
        for _ in range(num_steps - 1):
            powers.append(a @ powers[-1])
        # z = unrolled @ (z_1, noise_2, ..., noise_T)
        zero = np.zeros_like(a)
        unrolled = np.block([[powers[t - s] if s <= t else zero for s in range(num_steps)] for t in range(num_steps)])
        sources = np.kron(np.eye(num_steps), q)
        sources[:state, :state] = p
        drift, offset = np.zeros((num_steps, state)), np.zeros((num_steps, len(c)))
        if inputs is not None and model.input_matrix is not None:
            drift = np.asarray(inputs) @ np.asarray(model.input_matrix, np.float64).T
        if inputs is not None and model.emission_input_matrix is not None:
            offset = np.asarray(inputs) @ np.asarray(model.emission_input_matrix, np.float64).T
        drift[0] = m
        self.mean = unrolled @ drift.ravel()
        self.covariance = unrolled @ sources @ unrolled.T
        self.emission = np.kron(np.eye(num_steps), c)
        self.noise = np.kron(np.eye(num_steps), r)
        self.observed_mean = self.emission @ self.mean + offset.ravel()

    def log_evidence(self, x: np.ndarray, noise_divisor: float = 1) -> float:
        """log N(x; H μ, H S Hᵀ + R / divisor)."""
        covariance = self.emission @ self.covariance @ self.emission.T + self.noise / noise_divisor
        return log_normal(np.ravel(x) - self.observed_mean, covariance)

    def condition(self, x: np.ndarray, seen: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """log p of the seen entries, and the mean and covariance of all latents given them."""
        seen = np.ravel(seen)
        if not seen.any():
            return 0.0, self.mean, self.covariance
        emission = self.emission[seen]
        residual = np.ravel(x)[seen] - self.observed_mean[seen]
        covariance = emission @ self.covariance @ emission.T + self.noise[np.ix_(seen, seen)]
        gain = np.linalg.solve(covariance, emission @ self.covariance).T
        posterior = self.covariance - gain @ emission @ self.covariance
        return log_normal(residual, covariance), self.mean + gain @ residual, posterior

    def elbo(self, x: np.ndarray) -> float:
        """E[log p(x | z)] with z from the prior, which is then q."""
        spread = np.linalg.solve(self.noise, self.emission @ self.covariance @ self.emission.T)
        return log_normal(np.ravel(x) - self.observed_mean, self.noise) - 0.5 * np.trace(spread)

    def weight_moment(self, x: np.ndarray, k: int) -> float:
        """E[(w / p)^k] of one importance weight w = p(x | z) with z from the prior.

        The k-th power of N(x; Hz, R) is N(x; Hz, R / k) up to a constant, which leaves one Gaussian integral.
        """
        _, log_det = np.linalg.slogdet(2 * np.pi * self.noise)
        constant = -(k - 1) / 2 * log_det - len(self.noise) / 2 * np.log(k)
        return np.exp(constant + self.log_evidence(x, noise_divisor=k) - k * self.log_evidence(x))


def log_normal(deviation: np.ndarray, covariance: np.ndarray) -> float:
    """log N(deviation; 0, covariance)."""
    _, log_det = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * (log_det + deviation @ np.linalg.solve(covariance, deviation))


def average_moments(weight_moments: list[float], n: int) -> tuple[float, float]:
    """The third and fourth central moment of N averaged weights of mean one, from E[w^2], E[w^3] and E[w^4]."""
    second, third, fourth = weight_moments
    variance = second - 1
    skew = third - 3 * second + 2
    kurtosis = fourth - 4 * third + 6 * second - 3
    return skew / n**2, kurtosis / n**3 + 3 * (n - 1) * variance**2 / n**3


def hmm_evidence(model: DiscreteHMM, x: np.ndarray, power: int = 1) -> float:
    """E[p(x | z)^k] with z from the prior, by the forward recursion on powers of the likelihood."""
    initial, transition, likelihoods = _tables(model, x)
    forward = initial * likelihoods[0] ** power
    for likelihood in likelihoods[1:]:
        forward = (forward @ transition) * likelihood**power
    return float(forward.sum())


def hmm_importance_variance(model: DiscreteHMM, x: np.ndarray, num_particles: int) -> float:
    """The relative variance of IWAE's p̂_N with the prior as proposal."""
    return (hmm_evidence(model, x, 2) / hmm_evidence(model, x) ** 2 - 1) / num_particles


def hmm_filter_variance(model: DiscreteHMM, x: np.ndarray, num_particles: int) -> float:
    """The relative variance of the bootstrap filter's p̂_N under multinomial resampling at every step.

    E[p̂²] is an expectation over pairs of particles. Two of them are one and the same with probability 1/N, and
    then share a parent; that makes it a linear recursion on functions F of pairs of states, backwards in time
    (Cérou, Del Moral and Guyader 2011).
    """
    initial, transition, likelihoods = _tables(model, x)
    same = 1 / num_particles
    pair = np.outer(likelihoods[-1], likelihoods[-1])
    for g in likelihoods[-2::-1]:
        apart = np.outer(g, g) * (transition @ pair @ transition.T)
        together = np.outer(g, g * (transition @ np.diagonal(pair)))
        pair = (1 - same) * apart + same * together
    second = (1 - same) * initial @ pair @ initial + same * initial @ np.diagonal(pair)
    return float(second / hmm_evidence(model, x) ** 2 - 1)


def _tables(model: DiscreteHMM, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """π, A and p(x_t | z_t) for every step and state."""
    logits = (model.initial_logits, model.transition_logits, model.emission_logits)
    initial, transition, emission = (np.exp(np.asarray(value, np.float64)) for value in logits)
    return initial, transition, emission[:, np.ravel(x).astype(int)].T
