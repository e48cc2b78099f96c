"""New music: from the prior, as a continuation, from every kind of model, the same for the same seed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fivo.errors import InputError
from fivo.inference import sample
from fivo.models import SRNN, VRNN, BernoulliEmission, NormalEmission
from tests.sentences import assert_one_sentence

KEY = jax.random.key(3)


def test_from_the_prior(fivo_run):
    piece = sample(fivo_run.model, 12, key=KEY)
    assert piece.shape == (12, 88)
    assert set(np.unique(piece)) == {0, 1}
    np.testing.assert_array_equal(piece, sample(fivo_run.model, 12, key=KEY))
    assert (piece != sample(fivo_run.model, 12, key=jax.random.key(4))).any()


def test_a_continuation_goes_on_with_the_chords(fivo_run, music):
    """The trained model knows what comes next; it was never told but through the filtered prefix."""
    prefix = music.splits["test"][0]
    hits = []
    for seed in range(8):
        piece = sample(fivo_run.model, 2, key=jax.random.key(seed), prefix=prefix, num_particles=16)
        assert piece.shape == (2, 88)
        hits.append(np.array([agreement(frame, prefix[t]) for frame in piece for t in (0, 1, 2)]).reshape(2, 3))
    # Chords repeat every three steps: the next is that of the first frame and has nothing of the third.
    expected, _, last = np.mean(hits, axis=0)[0]
    assert expected > last + 0.3


def agreement(frame, chord):
    return (frame[chord > 0] > 0).mean() - (frame[chord == 0] > 0).mean()


@pytest.mark.parametrize("kind", [VRNN, SRNN])
@pytest.mark.parametrize("smoothing", [False, True])
def test_every_recurrent_model_can_continue(kind, smoothing):
    """Smoothing proposals read the whole prefix; what follows comes from the prior."""
    model = kind(BernoulliEmission(np.full(3, 0.3, np.float32)), 2, smoothing=smoothing, key=jax.random.key(0))
    prefix = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1]], np.uint8)
    piece = sample(model, 4, key=KEY, prefix=prefix, num_particles=3)
    assert piece.shape == (4, 3)
    assert np.isin(piece, (0, 1)).all()


def test_a_continuation_starts_where_the_prefix_ends():
    """A model that copies its last frame continues with the frame that the prefix ended in, not with the one before."""
    model = copying_model()
    prefix = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]], np.float32)
    piece = sample(model, 3, key=KEY, prefix=prefix, num_particles=2)
    np.testing.assert_allclose(piece, np.tile(prefix[-1], (3, 1)), atol=0.2)


class Copying(VRNN):
    """x_t is x_{t-1} but for a little noise: the emission's mean is the drive that the last frame left."""

    def encode(self, sequence):
        x = sequence.observations
        previous = jnp.concatenate([jnp.zeros((1, 2)), x[:-1]])
        return previous, jnp.zeros((x.shape[0], 2)), None

    def begin(self):
        return jnp.zeros(2)

    def context_next(self, memory, inputs):
        return memory

    def encode_next(self, memory, x, mask, inputs):
        return jnp.zeros(2), None, x

    def initial_state(self, context):
        return self.recurrence.initial()

    def prior(self, state, context):
        return super().prior(state, None)

    def emission(self, state, latent, context):
        return self.output(jnp.concatenate([context, jnp.full((2,), -4.0)]))

    def advance(self, state, latent, history):
        return state


def copying_model():
    return Copying(NormalEmission(np.zeros(2, np.float32)), 2, key=jax.random.key(0))


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"length": 0}, "length must be at least 1, got 0"),
        ({"length": 4, "prefix": np.zeros((0, 88), np.uint8)}, "at least one frame"),
        ({"length": 4, "prefix": np.zeros((3, 5), np.uint8)}, "88 entries per frame, as the model has, got 5"),
        (
            {"length": 4, "prefix": np.zeros((3, 88), np.uint8), "num_particles": 0},
            "num_particles must be a positive integer, got 0",
        ),
    ],
)
def test_bad_requests(fivo_run, arguments, part):
    with pytest.raises(InputError) as refused:
        sample(fivo_run.model, key=KEY, **arguments)
    assert_one_sentence(refused.value, part)
