"""Families of twists: what they may read, and their values against closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.stats import multivariate_normal, norm

from fivo.batch import Batch, Sequence
from fivo.bounds import SIXO
from fivo.errors import InputError
from fivo.models import (
    SRNN,
    VRNN,
    AuxiliaryTwist,
    BernoulliEmission,
    NextObservationTwist,
    NormalEmission,
    QuadratureTwist,
    RecurrentTwist,
    SequenceModel,
    StochasticVolatility,
    Twisted,
)
from fivo.models import _recurrent_twist as module
from tests.helpers import linear_gaussian
from tests.sentences import assert_one_sentence

KEY = jax.random.key(0)
TIME = 4


def recurrent(kind: str) -> SequenceModel:
    output = BernoulliEmission(np.full(3, 0.4, np.float32))
    models = {
        "vrnn": lambda: VRNN(output, 4, key=KEY),
        "srnn": lambda: SRNN(output, 4, smoothing=True, key=KEY),
        "inputs": lambda: VRNN(output, 4, num_inputs=2, key=KEY),
        "linear-gaussian": linear_gaussian,
        "volatility": lambda: StochasticVolatility(mean=(0.0, 1.0), persistence=(0.9, 0.5), scale=(0.3, 0.2)),
    }
    model = models[kind]()
    dim = {"linear-gaussian": 1, "volatility": 2}.get(kind)
    frames = None if dim is None else NormalEmission(np.zeros(dim, np.float32))
    return Twisted(model, RecurrentTwist(model, 4, frames=frames, key=jax.random.key(1)))


def sequence_of(model: SequenceModel) -> Sequence:
    dim = {"LinearGaussian": 1, "StochasticVolatility": 2}.get(type(model.bare).__name__, 3)
    x = jax.random.bernoulli(jax.random.key(2), 0.5, (TIME, dim)).astype(jnp.float32)
    inputs = jnp.ones((TIME, model.num_inputs)) if model.num_inputs else None
    return Sequence(x, jnp.asarray(TIME, jnp.int32), None, inputs)


def reads_later_frames_only(model: SequenceModel) -> bool:
    """future[t] depends on x_t+1 and on no frame up to x_t."""
    sequence = sequence_of(model)
    x = sequence.observations
    future = model.lookahead(sequence)
    for t in range(TIME):
        early = jnp.where(jnp.arange(TIME)[:, None] <= t, 1 - x, x)
        changed = model.lookahead(Sequence(early, sequence.length, None, sequence.inputs))
        if not np.array_equal(changed[t:], future[t:]) or (t > 0 and np.array_equal(changed[t - 1], future[t - 1])):
            return False
    return True


@pytest.mark.parametrize("kind", ["vrnn", "srnn", "inputs", "linear-gaussian", "volatility"])
def test_a_recurrent_twist_reads_the_frames_after_its_own(kind):
    model = recurrent(kind)
    assert reads_later_frames_only(model)
    sequence = sequence_of(model)
    batch = Batch(sequence.observations[None], jnp.asarray([TIME], jnp.int32), None, _one(sequence.inputs))
    bound = SIXO(3)
    value, slope = jax.value_and_grad(lambda m: bound(m, batch, key=KEY).log_evidence[0])(model)
    assert np.isfinite(value)
    assert float(jnp.abs(slope.twisting.network.output.weights[0]).max()) >= 0


def _one(inputs):
    return None if inputs is None else inputs[None]


def test_a_shift_that_was_forgotten_is_caught(monkeypatch):
    monkeypatch.setattr(module, "following_steps", lambda values: values)
    assert not reads_later_frames_only(recurrent("vrnn"))


def test_a_recurrent_twist_begins_as_one():
    model = recurrent("vrnn")
    state = model.initial_state(None)
    assert model.twist(state, jnp.ones(4), model.lookahead(sequence_of(model))[0]) == 0


class Walk(SequenceModel):
    """z_t ~ N(a z_t-1, s²) in two dimensions; x is each latent, or their sum, with noise."""

    slope: jax.Array
    scale: jax.Array
    noise: jax.Array
    summed: bool = eqx.field(static=True)

    markov = True

    def __init__(self, summed: bool) -> None:
        self.slope, self.scale, self.noise, self.summed = (*map(jnp.asarray, (0.8, 0.6, 0.5)), summed)

    def initial_state(self, context):
        return jnp.zeros(2)

    def prior(self, state, context):
        return dist.Normal(self.slope * state, self.scale * jnp.ones(2))

    def emission(self, state, latent, context):
        mean = jnp.sum(latent, keepdims=True) if self.summed else latent
        return dist.Normal(mean, self.noise)


def walk_lookahead(model: Walk, z: np.ndarray, x: np.ndarray) -> float:
    """log p(x_1, …, x_w | z_0) from the joint normal."""
    a, s, r = (float(v) for v in (model.slope, model.scale, model.noise))
    w = len(x)
    powers = np.array([[a ** (i - j) if j <= i else 0.0 for j in range(w)] for i in range(w)])
    covariance = s**2 * powers @ powers.T
    means = np.array([a ** (i + 1) for i in range(w)])[:, None] * z[None, :]
    if model.summed:
        return multivariate_normal.logpdf(x[:, 0], means.sum(axis=1), 2 * covariance + r**2 * np.eye(w))
    noise = r**2 * np.eye(w)
    return sum(multivariate_normal.logpdf(x[:, i], means[:, i], covariance + noise) for i in range(2))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("summed", [False, True], ids=["factorised", "grid"])
@pytest.mark.parametrize("window", [1, 2])
def test_quadrature_is_the_likelihood_of_the_next_frames(summed, window):
    model = Twisted(Walk(summed), QuadratureTwist(24 if window == 1 else 16, window))
    x = jnp.asarray([[0.3, -0.4], [0.5, 0.1], [-0.2, 0.7]])[:, : 1 if summed else 2]
    sequence = Sequence(x, jnp.asarray(3, jnp.int32))
    z = jnp.asarray([0.4, -0.3])
    future = model.lookahead(sequence)
    for t in range(2):
        ahead = np.asarray(x[t + 1 : t + 1 + window])
        got = model.twist(jnp.zeros(2), z, jax.tree.map(lambda leaf, t=t: leaf[t], future))
        np.testing.assert_allclose(got, walk_lookahead(model.model, np.asarray(z), ahead), atol=1e-5)
    hidden = Sequence(x, jnp.asarray(3, jnp.int32), jnp.arange(3)[:, None] * jnp.ones(x.shape) != 1)
    nothing = jax.tree.map(lambda leaf: leaf[0], Twisted(Walk(summed), QuadratureTwist(3)).lookahead(hidden))
    assert Twisted(Walk(summed), QuadratureTwist(3)).twist(jnp.zeros(2), z, nothing) == pytest.approx(0, abs=1e-12)


def test_the_auxiliary_twist_is_the_next_frame_at_the_priors_mean():
    model = Twisted(Walk(False), AuxiliaryTwist())
    x = jnp.asarray([[0.3, -0.4], [0.5, 0.1]])
    future = jax.tree.map(lambda leaf: leaf[0], model.lookahead(Sequence(x, jnp.asarray(2, jnp.int32))))
    z = jnp.asarray([0.4, -0.3])
    expected = dist.Normal(0.8 * z, 0.5).log_prob(x[1]).sum()
    np.testing.assert_allclose(model.twist(jnp.zeros(2), z, future), expected, rtol=1e-5)
    vrnn = Twisted(VRNN(BernoulliEmission(np.full(2, 0.4)), 3, key=KEY), AuxiliaryTwist())
    found = SIXO(4)(vrnn, (x > 0)[None].astype(float), key=KEY)
    assert np.isfinite(found.log_evidence).all()


def test_twists_that_do_not_fit_are_refused():
    vrnn = VRNN(BernoulliEmission(np.full(3, 0.4)), 3, key=KEY)
    wide = StochasticVolatility()
    for mistake, said in (
        (lambda: Twisted(vrnn, QuadratureTwist()), "Markov chain"),
        (lambda: QuadratureTwist(0), "num_points"),
        (lambda: RecurrentTwist(wide, 3, key=KEY), "frames must be an emission"),
        (lambda: Twisted(wide, RecurrentTwist(vrnn, 3, key=KEY)), "made for the model"),
        (
            lambda: SIXO(2)(Twisted(linear_gaussian(), QuadratureTwist()), jnp.zeros((1, 2, 1)), key=KEY),
            "diagonal normal",
        ),
    ):
        with pytest.raises(InputError) as error:
            mistake()
        assert_one_sentence(error.value, said)


def test_the_next_observation_is_found():
    """Of every step: which frame comes next, how far away it is, and nothing of frames up to its own."""
    spread = ((0.0,), (1.0,))
    model = Twisted(linear_gaussian(), NextObservationTwist(spread, spread, 3, longest=4, key=KEY))
    x = jnp.arange(1.0, 8.0)[:, None]
    mask = jnp.asarray([True, False, True, True, False, False, True])[:, None]
    future = model.lookahead(Sequence(x, jnp.asarray(7, jnp.int32), mask, None))
    assert future.x[:, 0].tolist() == [3, 3, 4, 7, 7, 7, 0]
    assert future.seen[:, 0].tolist() == [True] * 6 + [False]
    assert (4 * future.wait[:6, 0]).tolist() == [2, 1, 1, 3, 2, 1]
    shorter = model.lookahead(Sequence(x, jnp.asarray(6, jnp.int32), mask, None))
    assert shorter.seen[:, 0].tolist() == [True] * 3 + [False] * 4


def test_the_next_observation_is_forecast_by_a_normal():
    """log r_t against its formula, with the networks' outputs taken as they are."""
    latent, frame = ((0.5, -0.2), (2.0, 4.0)), ((1.0,), (3.0,))
    twist = NextObservationTwist(latent, frame, 3, longest=2, key=KEY)
    model = Twisted(linear_gaussian(), twist)
    sequence = Sequence(jnp.asarray([[0.3], [1.7]]), jnp.asarray(2, jnp.int32), None, None)
    future = jax.tree.map(lambda leaf: leaf[0], model.lookahead(sequence))
    z = jnp.asarray([0.9, 0.1])
    shift, log_deviation = np.asarray(twist.forecast(jnp.asarray([(0.9 - 0.5) / 2, (0.1 + 0.2) / 4, 0.5])))
    mean = float(model.emission(None, z, None).mean[0]) + 3 * shift
    alone = float(twist.alone(jnp.asarray([(1.7 - 1) / 3, 0.5]))[0])
    constant = np.log(3 * np.sqrt(2 * np.pi))
    expected = norm.logpdf(1.7, mean, 3 * np.exp(log_deviation)) + constant - alone
    np.testing.assert_allclose(float(model.twist(None, z, future)), expected, rtol=1e-5)
    with pytest.raises(InputError) as refusal:
        Twisted(VRNN(BernoulliEmission(np.full(3, 0.4, np.float32)), 2, key=KEY), twist)
    assert_one_sentence(refusal.value, "Markov", "VRNN")
