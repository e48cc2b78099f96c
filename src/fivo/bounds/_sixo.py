"""Smoothing inference with twisted objectives (Lawson, Raventós, Warrington and Linderman 2022)."""

from typing import ClassVar

from fivo.bounds._fivo import FIVO


class SIXO(FIVO):
    """E[log p̂_N] of a twisted particle filter, whose targets p(z_1:t, x_1:t) r_t(z_t) look ahead.

    Args:
        num_particles: N.
        resampling: how ancestors are drawn, as for `ParticleFilter`; multinomial by default.
        criterion: when to resample, as for `ParticleFilter`; by default when ESS <= N/2.
        gradient: what `jax.grad` of the bound follows, by name or as a `fivo.gradients.Gradient`. Ascending the bound
            trains the twist with the rest (SIXO-u), but only with the score of the ancestors ("resampling-score"):
            what a twist gains by choosing them is all in that term, and the others lead it astray. Twists trained by
            `fivo.training.density_ratio` or without parameters need no more than the pathwise gradient.
        filter: a `ParticleFilter` with `twisted=True`, in place of the first three.

    It is called like every bound, with a model that has a twist (`fivo.models.Twisted`). With r_t = p(x_t+1:T | z_t)
    and the smoothing proposal it is log p(x) for every N, which FIVO is not.
    """

    twisted: ClassVar[bool] = True

    __init__ = FIVO.__init__  # said for type checkers, which would make one from the fields
