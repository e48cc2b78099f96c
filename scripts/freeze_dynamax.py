#!/usr/bin/env python3
"""Freeze what `dynamax` says of a few random models, as an oracle for the tests.

    python scripts/freeze_dynamax.py tests/oracles/dynamax.json

Runs in an environment with `dynamax`; it drags in a nightly TensorFlow Probability, so it is no part of the locked set.
Every linear-Gaussian value is checked against dense conditioning of the joint Gaussian of all z and x, and every HMM
value against unnormalised forward and backward messages in plain NumPy, before it is written.
"""

import argparse
import functools
import json
import os
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from dynamax.hidden_markov_model import hmm_smoother
from dynamax.linear_gaussian_ssm import inference as lgssm
from numpy.random import Generator
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal

Arrays = dict[str, np.ndarray]

SIGNIFICANT_DIGITS = 12
SEED = 170509279
LINEAR_GAUSSIAN_SIZES = [(1, 1, 10), (3, 2, 25), (4, 5, 12)]
HMM_SIZES = [(3, 4, 20), (5, 3, 15)]

# dynamax adds 1e-9 to the diagonal before every solve, which would leave its gains good to nine digits only.
lgssm.psd_solve = functools.partial(lgssm.psd_solve, diagonal_boost=0.0)


def random_covariance(rng: Generator, size: int) -> np.ndarray:
    """A full covariance with eigenvalues between 0.3 and 2."""
    directions, _ = np.linalg.qr(rng.standard_normal((size, size)))
    return (directions * rng.uniform(0.3, 2.0, size)) @ directions.T


def random_linear_gaussian(rng: Generator, state_size: int, observation_size: int) -> Arrays:
    """A stable model without symmetry: no matrix is diagonal, no mean is zero."""
    transition = rng.standard_normal((state_size, state_size))
    transition *= 0.9 / np.abs(np.linalg.eigvals(transition)).max()
    return {
        "initial_mean": rng.standard_normal(state_size),
        "initial_covariance": random_covariance(rng, state_size),
        "transition_matrix": transition,
        "transition_covariance": random_covariance(rng, state_size),
        "emission_matrix": rng.standard_normal((observation_size, state_size)),
        "emission_covariance": random_covariance(rng, observation_size),
    }


def sample_linear_gaussian(rng: Generator, model: Arrays, num_steps: int) -> np.ndarray:
    latent = rng.multivariate_normal(model["initial_mean"], model["initial_covariance"])
    observations = []
    for _ in range(num_steps):
        observations.append(rng.multivariate_normal(model["emission_matrix"] @ latent, model["emission_covariance"]))
        latent = rng.multivariate_normal(model["transition_matrix"] @ latent, model["transition_covariance"])
    return np.array(observations)


def dynamax_linear_gaussian(model: Arrays, observations: np.ndarray) -> Arrays:
    parameters = lgssm.make_lgssm_params(
        initial_mean=model["initial_mean"],
        initial_cov=model["initial_covariance"],
        dynamics_weights=model["transition_matrix"],
        dynamics_cov=model["transition_covariance"],
        emissions_weights=model["emission_matrix"],
        emissions_cov=model["emission_covariance"],
    )
    posterior = lgssm.lgssm_smoother(parameters, jnp.asarray(observations))
    return {
        "log_evidence": np.asarray(posterior.marginal_loglik),
        "filtered_means": np.asarray(posterior.filtered_means),
        "filtered_covariances": np.asarray(posterior.filtered_covariances),
        "smoothed_means": np.asarray(posterior.smoothed_means),
        "smoothed_covariances": np.asarray(posterior.smoothed_covariances),
    }


def dense_linear_gaussian(model: Arrays, observations: np.ndarray) -> Arrays:
    """The same quantities from one joint Gaussian over all latents and observations, with no recursion over time."""
    num_steps, observation_size = observations.shape
    state_size = len(model["initial_mean"])
    # With noise e_1 = z_1 and e_t = z_t - A z_{t-1}, the latents are z = lower @ e.
    powers = [np.linalg.matrix_power(model["transition_matrix"], t) for t in range(num_steps)]
    lower = np.block(
        [[powers[t - s] if s <= t else np.zeros_like(powers[0]) for s in range(num_steps)] for t in range(num_steps)]
    )
    noise = block_diag(model["initial_covariance"], *[model["transition_covariance"]] * (num_steps - 1))
    emission = np.kron(np.eye(num_steps), model["emission_matrix"])
    latent_mean = lower[:, :state_size] @ model["initial_mean"]
    latent_covariance = lower @ noise @ lower.T
    cross = latent_covariance @ emission.T
    evidence_covariance = emission @ cross + np.kron(np.eye(num_steps), model["emission_covariance"])
    residual = observations.ravel() - emission @ latent_mean

    def condition(num_seen: int) -> tuple[np.ndarray, np.ndarray]:
        seen = slice(0, num_seen * observation_size)
        gain = np.linalg.solve(evidence_covariance[seen, seen], cross[:, seen].T).T
        mean = latent_mean + gain @ residual[seen]
        covariance = (latent_covariance - gain @ cross[:, seen].T).reshape(num_steps, state_size, num_steps, state_size)
        marginals = np.array([covariance[t, :, t] for t in range(num_steps)])
        return mean.reshape(num_steps, state_size), marginals

    filtered = [condition(t + 1) for t in range(num_steps)]
    smoothed_means, smoothed_covariances = filtered[-1]
    return {
        "log_evidence": multivariate_normal.logpdf(residual, cov=evidence_covariance),
        "filtered_means": np.array([means[t] for t, (means, _) in enumerate(filtered)]),
        "filtered_covariances": np.array([covariances[t] for t, (_, covariances) in enumerate(filtered)]),
        "smoothed_means": smoothed_means,
        "smoothed_covariances": smoothed_covariances,
    }


def random_hmm(rng: Generator, num_states: int, num_symbols: int) -> Arrays:
    return {
        "initial_probs": rng.dirichlet(np.ones(num_states)),
        "transition_probs": rng.dirichlet(np.ones(num_states), num_states),
        "emission_probs": rng.dirichlet(np.ones(num_symbols), num_states),
    }


def sample_hmm(rng: Generator, model: Arrays, num_steps: int) -> np.ndarray:
    num_states, num_symbols = model["emission_probs"].shape
    state = rng.choice(num_states, p=model["initial_probs"])
    observations = []
    for _ in range(num_steps):
        observations.append(rng.choice(num_symbols, p=model["emission_probs"][state]))
        state = rng.choice(num_states, p=model["transition_probs"][state])
    return np.array(observations)


def dynamax_hmm(model: Arrays, observations: np.ndarray) -> Arrays:
    log_likelihoods = np.log(model["emission_probs"]).T[observations]
    posterior = hmm_smoother(*map(jnp.asarray, (model["initial_probs"], model["transition_probs"], log_likelihoods)))
    return {
        "log_evidence": np.asarray(posterior.marginal_loglik),
        "filtered_probabilities": np.asarray(posterior.filtered_probs),
        "smoothed_probabilities": np.asarray(posterior.smoothed_probs),
    }


def dense_hmm(model: Arrays, observations: np.ndarray) -> Arrays:
    """The same quantities from unnormalised forward and backward messages: short sequences do not underflow."""
    likelihoods = model["emission_probs"].T[observations]
    forward = [model["initial_probs"] * likelihoods[0]]
    for likelihood in likelihoods[1:]:
        forward.append((forward[-1] @ model["transition_probs"]) * likelihood)
    backward = [np.ones(len(model["initial_probs"]))]
    for likelihood in likelihoods[:0:-1]:
        backward.append(model["transition_probs"] @ (likelihood * backward[-1]))
    joint = np.array(forward) * np.array(backward[::-1])
    return {
        "log_evidence": np.log(forward[-1].sum()),
        "filtered_probabilities": np.array([message / message.sum() for message in forward]),
        "smoothed_probabilities": joint / joint.sum(axis=1, keepdims=True),
    }


def rounded(array: np.ndarray) -> Any:
    if array.ndim > 0:
        return [rounded(entry) for entry in array]
    if np.issubdtype(array.dtype, np.integer):
        return int(array)
    return float(f"{float(array):.{SIGNIFICANT_DIGITS}g}")


def freeze(
    model: Arrays,
    sample: Callable[[Arrays], np.ndarray],
    oracle: Callable[[Arrays, np.ndarray], Arrays],
    check: Callable[[Arrays, np.ndarray], Arrays],
) -> dict[str, Any]:
    """One case; the oracle sees the rounded numbers that the file will hold."""
    parameters = {name: rounded(array) for name, array in model.items()}
    model = {name: np.array(values) for name, values in parameters.items()}
    frozen_observations = rounded(sample(model))
    observations = np.array(frozen_observations)
    expected = oracle(model, observations)
    for name, value in check(model, observations).items():
        np.testing.assert_allclose(expected[name], value, rtol=1e-10, atol=1e-12, err_msg=name)
    return {
        "parameters": parameters,
        "observations": frozen_observations,
        "expected": {name: rounded(array) for name, array in expected.items()},
    }


def freeze_all() -> dict[str, Any]:
    rng = np.random.default_rng(SEED)
    return {
        "versions": {name: version(name) for name in ("dynamax", "tfp-nightly", "jax", "numpy")},
        "seed": SEED,
        "linear_gaussian": [
            freeze(
                random_linear_gaussian(rng, state_size, observation_size),
                lambda model, num_steps=num_steps: sample_linear_gaussian(rng, model, num_steps),
                dynamax_linear_gaussian,
                dense_linear_gaussian,
            )
            for state_size, observation_size, num_steps in LINEAR_GAUSSIAN_SIZES
        ],
        "hmm": [
            freeze(
                random_hmm(rng, num_states, num_symbols),
                lambda model, num_steps=num_steps: sample_hmm(rng, model, num_steps),
                dynamax_hmm,
                dense_hmm,
            )
            for num_states, num_symbols, num_steps in HMM_SIZES
        ],
    }


def write_atomically(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Freeze dynamax's answers for the tests.")
    parser.add_argument("path", type=Path, help="the JSON file to write")
    path = parser.parse_args().path
    jax.config.update("jax_enable_x64", True)
    write_atomically(path, json.dumps(freeze_all(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
