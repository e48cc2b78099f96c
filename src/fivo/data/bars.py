"""Generated images of bars: a small set for plain latent variable models, whose true likelihood is known."""

import itertools

import numpy as np
from jaxtyping import Float

RATE, FLIP = 0.3, 0.02
"""How likely a bar is on, and a pixel wrong."""


def bars(num_images: int, *, size: int = 4, seed: int = 0) -> Float[np.ndarray, "image pixel"]:
    """Draw images of bars: each row and each column is lit at random, then some pixels flip.

    Args:
        num_images: How many.
        size: Pixels in a row, and in a column.
        seed: Random seed.

    Returns:
        Zeros and ones [image, size * size].
    """
    rng = np.random.default_rng(seed)
    rows, columns = rng.random((2, num_images, size)) < RATE
    lit = rows[:, :, None] | columns[:, None, :]
    return (lit ^ (rng.random(lit.shape) < FLIP)).reshape(num_images, -1).astype(np.float32)


def bars_log_likelihood(images: Float[np.ndarray, "image pixel"]) -> Float[np.ndarray, " image"]:
    """The exact log p(x) of images of bars, by adding up all patterns.

    Args:
        images: Zeros and ones [image, pixel].

    Returns:
        log p of every image [image].
    """
    size = round(images.shape[1] ** 0.5)
    on = np.array(list(itertools.product([False, True], repeat=2 * size)))
    lit = (on[:, :size, None] | on[:, None, size:]).reshape(len(on), -1)
    log_prior = on.sum(axis=1) * np.log(RATE) + (~on).sum(axis=1) * np.log1p(-RATE)
    wrong = images @ (1.0 - lit.T) + (1.0 - images) @ lit.T
    scores = log_prior + wrong * np.log(FLIP) + (images.shape[1] - wrong) * np.log1p(-FLIP)
    top = scores.max(axis=1, keepdims=True)
    return top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
