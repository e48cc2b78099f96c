"""Models that read inputs, and sequences for them."""

import jax
import numpy as np

from fivo.models import SRNN, VRNN, BernoulliEmission, LinearGaussian
from tests.models.cases import away_from_zero

LENGTHS = (5, 3)
STATE, DIM, WIDTH = 3, 2, 2
B = np.array([[0.7, -0.4], [0.2, 0.9], [-0.5, 0.3]])
D = np.array([[0.6, 0.1], [-0.3, 0.8]])
MATRICES = {
    "both": {"input_matrix": B, "emission_input_matrix": D},
    "of the latents": {"input_matrix": B},
    "of the observations": {"emission_input_matrix": D},
}


def linear_gaussian(proposal: str = "prior", **matrices: np.ndarray) -> LinearGaussian:
    return LinearGaussian(
        transition_matrix=np.array([[0.8, 0.3, 0.0], [-0.2, 0.7, 0.1], [0.1, 0.0, 0.5]]),
        transition_covariance=np.array([[0.5, 0.1, 0.0], [0.1, 0.4, -0.1], [0.0, -0.1, 0.3]]),
        emission_matrix=np.array([[1.0, 0.4, -0.3], [0.2, -0.6, 0.9]]),
        emission_covariance=np.array([[0.6, 0.35], [0.35, 0.5]]),
        initial_mean=np.array([0.5, -0.3, 0.1]),
        initial_covariance=np.array([[1.0, 0.2, 0.1], [0.2, 0.8, 0.0], [0.1, 0.0, 0.6]]),
        proposal=proposal,
        **matrices or MATRICES["both"],
    )


def sequences(*lengths: int, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Frames, masks with some entries and a whole frame missing, and inputs."""
    rng = np.random.default_rng(seed)
    xs = [2 * rng.standard_normal((length, DIM)) for length in lengths]
    masks = [rng.random(x.shape) > 0.35 for x in xs]
    for mask in masks:
        mask[1] = False
    return xs, masks, [rng.standard_normal((length, WIDTH)) for length in lengths]


MEAN = np.array([0.1, 0.2, 0.0, 0.6])
HIDDEN, NUM_FRAMES = 3, 8


def recurrent(kind: type[VRNN] | type[SRNN], smoothing: bool = False) -> VRNN | SRNN:
    """A network of every kind of input: frames, which entries are missing, u_t; no bias is zero."""
    options = {"num_inputs": WIDTH, "gaps": True, "smoothing": smoothing}
    return away_from_zero(kind(BernoulliEmission(MEAN), HIDDEN, key=jax.random.key(0), **options), np.float64)


def frames(num_steps: int = NUM_FRAMES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = (rng.random((num_steps, len(MEAN))) < 0.4).astype(np.float64)
    mask = rng.random(x.shape) > 0.3
    return np.where(mask, x, 0), mask, rng.standard_normal((num_steps, WIDTH))
