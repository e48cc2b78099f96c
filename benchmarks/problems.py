"""The numbers that all sides compute on, in NumPy only, and what is known exactly about them."""

from typing import NamedTuple

import numpy as np

NOTES = 88
SAMPLES = 200


class Size(NamedTuple):
    """Sequences in a batch, particles, units of every layer, steps of a sequence."""

    batch: int
    particles: int
    hidden: int
    steps: int

    def __str__(self) -> str:
        return f"batch {self.batch}, N {self.particles}, H {self.hidden}, T {self.steps}"


def pianoroll(batch: int, steps: int, seed: int = 0) -> np.ndarray:
    """[batch, steps, notes] of zeros and ones, as dense as the paper's music."""
    return (np.random.default_rng(seed).random((batch, steps, NOTES)) < 0.045).astype(np.float32)


def waveform(batch: int, steps: int, seed: int = 0) -> np.ndarray:
    """[batch, steps, samples] of standardised sound: a few tones that come and go, and noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(steps * SAMPLES) / 16_000
    sound = 0.1 * rng.standard_normal((batch, len(time)))
    for _ in range(4):
        pitch, swell = rng.uniform(100, 2000, (batch, 1)), rng.uniform(1, 5, (batch, 1))
        sound += np.sin(2 * np.pi * pitch * time) * np.sin(2 * np.pi * swell * time) ** 2
    return (sound / sound.std()).astype(np.float32).reshape(batch, steps, SAMPLES)


def observations(data: str, batch: int, steps: int) -> np.ndarray:
    """Frames of `music` or of `speech`."""
    return pianoroll(batch, steps) if data == "music" else waveform(batch, steps)


def train_mean(data: str = "music") -> np.ndarray:
    """What the frames are centred by."""
    return np.full(NOTES, 0.045, np.float32) if data == "music" else np.zeros(SAMPLES, np.float32)


def linear_gaussian(num_steps: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """z_1 ~ N(m0, P0), z_t ~ N(A z_{t-1}, Q), x_t ~ N(C z_t, R): state 4, observation 2, full covariances."""
    rng = np.random.default_rng(seed)

    def covariance(size: int) -> np.ndarray:
        q, _ = np.linalg.qr(rng.standard_normal((size, size)))
        return (q * rng.uniform(0.3, 1.0, size)) @ q.T

    transition = rng.standard_normal((4, 4))
    transition *= 0.9 / np.linalg.norm(transition, 2)
    p = {"A": transition, "Q": covariance(4), "C": rng.standard_normal((2, 4)), "R": 2 * covariance(2)}
    p |= {"m0": rng.standard_normal(4), "P0": covariance(4)}
    z, x = rng.multivariate_normal(p["m0"], p["P0"]), []
    for _ in range(num_steps):
        x.append(rng.multivariate_normal(p["C"] @ z, p["R"]))
        z = rng.multivariate_normal(p["A"] @ z, p["Q"])
    return p, np.array(x)


def kalman_log_evidence(p: dict[str, np.ndarray], x: np.ndarray) -> float:
    """log p(x) of the linear-Gaussian model."""
    m, cov, total = p["m0"], p["P0"], 0.0
    for y in x:
        s = p["C"] @ cov @ p["C"].T + p["R"]
        r = y - p["C"] @ m
        total += -0.5 * (r @ np.linalg.solve(s, r) + np.linalg.slogdet(2 * np.pi * s)[1])
        gain = np.linalg.solve(s, p["C"] @ cov).T
        m, cov = m + gain @ r, cov - gain @ s @ gain.T
        m, cov = p["A"] @ m, p["A"] @ cov @ p["A"].T + p["Q"]
    return float(total)


def stochastic_volatility(num_steps: int, seed: int = 0) -> tuple[dict[str, float], np.ndarray]:
    """z_1 ~ N(mu, sigma^2 / (1 - phi^2)), z_t ~ N(mu + phi (z_{t-1} - mu), sigma^2), x_t ~ N(0, exp(z_t))."""
    rng = np.random.default_rng(seed)
    mu, phi, sigma = -1.0, 0.97, 0.2
    z, x = mu + sigma / np.sqrt(1 - phi**2) * rng.standard_normal(), []
    for _ in range(num_steps):
        x.append(np.exp(z / 2) * rng.standard_normal())
        z = mu + phi * (z - mu) + sigma * rng.standard_normal()
    return {"mu": mu, "phi": phi, "sigma": sigma}, np.array(x)


def grid_log_evidence(p: dict[str, float], x: np.ndarray, num_points: int = 1200) -> float:
    """log p(x) of the stochastic volatility model by quadrature over z: a Kalman filter's place is taken by a grid."""
    spread = p["sigma"] / np.sqrt(1 - p["phi"] ** 2)
    z = p["mu"] + spread * np.linspace(-8, 8, num_points)
    step = z[1] - z[0]
    kernel = _normal(z[None, :], p["mu"] + p["phi"] * (z[:, None] - p["mu"]), p["sigma"]) * step
    belief, total = _normal(z, p["mu"], spread) * step, 0.0
    for y in x:
        belief = belief * _normal(y, 0.0, np.exp(z / 2))
        total += np.log(belief.sum())
        belief = (belief / belief.sum()) @ kernel
    return float(total)


def _normal(x: np.ndarray, mean: np.ndarray | float, scale: np.ndarray | float) -> np.ndarray:
    return np.exp(-0.5 * ((x - mean) / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
