"""A first step with a prior of its own is the same as one that every step looks for, wherever a model is run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.bounds import (
    AIS,
    ELBO,
    FIVO,
    HMC,
    IWAE,
    MIS,
    AffineProposal,
    ConstantGate,
    OwnProposal,
    sandwich,
    temperatures,
)
from fivo.gradients import GRADIENTS
from fivo.models import simulate
from fivo.resampling import Always, ESSBelow, Never, Schedule
from fivo.smc import backward_simulate, conditional_filter, fixed_lag, particle_gibbs
from tests.covering import covering
from tests.fast import fast_jit
from tests.smc.first_steps import KEEP, PAIRS, Split, Walk, pair, sequences, single

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(7)
BATCHES = {"padded": lambda: sequences(5, 1, 0, 3), "one step": lambda: single(1), "two steps": lambda: single(2)}


def assert_same(got, expected):
    """Equal structure and integers, and floats equal to 1e-12."""
    got, expected = jax.tree.leaves(got), jax.tree.leaves(expected)
    assert expected
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        if jnp.issubdtype(a.dtype, jnp.floating):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_array_equal(a, b)


def both(function, name: str = "learned"):
    """What a function of the model gives for the two ways to write it."""
    return [fast_jit(function)(model) for model in pair(name)]


FILTERS = {
    "adaptive": fivo.ParticleFilter(4, "multinomial", ESSBelow(0.9)),
    "always": fivo.ParticleFilter(3, "stratified", Always()),
    "never": fivo.ParticleFilter(4, criterion=Never()),
    "one particle": fivo.ParticleFilter(1),
    "many particles": fivo.ParticleFilter(300, "systematic", ESSBelow(0.95)),
    "soft": fivo.ParticleFilter(4, "soft", Always()),
}


# All filters on a padded batch, and those whose loops differ on short ones: each row is two programs.
SOME = [(pf, name, "padded") for pf, name in zip(FILTERS, [*PAIRS] * 3, strict=True)]
SOME += [("adaptive", "bootstrap", "one step"), ("never", "learned", "one step"), ("always", "bootstrap", "two steps")]
SOME += [("one particle", "learned", "two steps"), ("adaptive", "learned", "two steps")]


@pytest.mark.parametrize(("pf", "name", "batch"), SOME)
def test_the_filter(pf, name, batch):
    data = BATCHES[batch]()
    split, flagged = both(lambda m: FILTERS[pf](m, data, key=KEY, keep=KEEP), name)
    assert_same(split, flagged)
    if batch == "padded":
        assert bool(split.resampled.any()) == (pf not in ("never", "one particle"))
        assert split.log_increments[2].tolist() == [0] * 6, "a sequence without steps"
        assert np.all(np.asarray(split.log_increments)[[0, 1, 3], 0] != 0)


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_every_gradient_of_fivo(gradient):
    bound = FIVO(3, criterion=Schedule((0, 2)), gradient=gradient)
    data = sequences(5, 1, 3)
    split, flagged = both(eqx.filter_value_and_grad(lambda m: jnp.sum(bound(m, data, key=KEY).log_evidence)))
    assert_same(split, flagged)
    assert np.any(split[1].centre != 0)


@covering("bound, batch", [ELBO(3), IWAE(4), IWAE(4, gradient="doubly-reparameterized")], BATCHES, strength=1)
def test_the_importance_path(bound, batch):
    data = BATCHES[batch]()
    split, flagged = both(jax.value_and_grad(lambda m: jnp.sum(bound(m, data, key=KEY).log_evidence)))
    assert_same(split, flagged)


@pytest.mark.parametrize("batch", ["padded", "one step"])
def test_bounds_of_whole_trajectories(batch):
    data = BATCHES[batch]()
    beside = AffineProposal(0.4 * jnp.eye(2), jnp.zeros(2), jnp.zeros(2))
    for bound in (
        AIS(2, temperatures.linear(3), HMC(0.1, 2)),
        MIS((OwnProposal(), beside), ConstantGate(jnp.zeros(2)), num_samples=2),
    ):
        assert_same(*both(lambda m, b=bound: b(m, data, key=KEY)))


@pytest.mark.parametrize("length", [1, 6])
@pytest.mark.parametrize("name", PAIRS)
def test_streams(name, length, tmp_path):
    """And the numbers of the filter on the whole, also after the first state was saved and loaded."""
    pf, batch = FILTERS["adaptive"], sequences(length)
    whole = pf(pair(name)[0], batch, key=KEY[None], keep=KEEP)

    def stream(model):
        state, infos = pf.init(model, key=KEY), []
        for t in range(length):
            if t < 2:
                fivo.save(tmp_path / "state", state)
                state = fivo.load(tmp_path / "state", like=pf.init(model, key=jax.random.key(0)))
            state, info = pf.step(model, state, batch.observations[0, t], mask=batch.mask[0, t])
            infos.append(info)
        return pf.finish(state), infos

    (split, infos), (flagged, other) = (stream(model) for model in pair(name))
    assert_same((split, infos), (flagged, other))
    assert_same(split.log_evidence, whole.log_evidence[0])
    for t, info in enumerate(infos):
        records = (whole.log_increments, whole.log_weights, whole.ancestors, whole.latents)
        expected = jax.tree.map(lambda leaf, t=t: leaf[0, t], records)
        assert_same((info.log_increment, info.log_weights, info.ancestors, info.latents), expected)


@pytest.mark.parametrize(
    ("name", "ancestor_sampling", "batch"),
    [
        ("learned", True, "padded"),
        ("bootstrap", False, "padded"),
        ("learned", False, "one step"),
        ("bootstrap", True, "two steps"),
    ],
)
def test_conditional_smc(name, ancestor_sampling, batch):
    """Ancestor sampling scores the reference's future, which never is the first step."""
    data = BATCHES[batch]()
    reference = jax.random.normal(jax.random.key(1), data.observations.shape)
    pf = fivo.ParticleFilter(4, criterion=ESSBelow(0.9))
    split, flagged = both(
        lambda m: conditional_filter(pf, m, data, reference, key=KEY, keep=KEEP, ancestor_sampling=ancestor_sampling),
        name,
    )
    assert_same(split, flagged)


def test_particle_gibbs_and_the_sandwich():
    data, pf = sequences(4, 1), fivo.ParticleFilter(4, criterion=Always())
    assert_same(*both(lambda m: particle_gibbs(pf, m, data, num_sweeps=3, key=KEY)))
    reference = jax.random.normal(jax.random.key(1), data.observations.shape)
    assert_same(*both(lambda m: sandwich(pf, m, data, reference, key=KEY)))


@pytest.mark.parametrize("batch", BATCHES)
def test_smoothing(batch):
    data = BATCHES[batch]()

    def smooth(model):
        result = FILTERS["adaptive"](model, data, key=KEY, keep=KEEP)
        drawn = backward_simulate(model, data, result, num_trajectories=5, key=jax.random.key(2))
        return drawn, fixed_lag(model, data, result, lag=2)

    assert_same(*both(smooth))


@pytest.mark.parametrize("length", [1, 5])
def test_joint_densities_and_simulations(length):
    """The density of a draw too, by hand: the first latent has a law of its own."""
    split, flagged = both(lambda m: simulate(m, length, key=KEY))
    assert_same(split, flagged)
    x, mask = sequences(length).observations[0, :length], sequences(length).mask[0, :length]
    split_density, flagged_density = both(lambda m: m.log_joint(split.latents, x, mask))
    assert_same(split_density, flagged_density)
    model, z = pair()[0], np.asarray(split.latents)
    means = np.concatenate([np.asarray(model.centre)[None], np.asarray(model.decay) * z[:-1]])
    scales = np.where(np.arange(length)[:, None] == 0, 2.0, 0.7)
    exact = log_normal(z, means, scales).sum()
    exact += np.where(mask, log_normal(np.asarray(x), z, np.exp(-0.2)), 0).sum()
    np.testing.assert_allclose(split_density, exact, rtol=1e-12)


def log_normal(x, loc, scale):
    return -0.5 * ((x - loc) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)


def test_simulated_first_latents_are_drawn_from_the_initial_prior():
    drawn = fast_jit(jax.vmap(lambda key: simulate(pair()[0], 2, key=key).latents))(jax.random.split(KEY, 4000))
    first = np.asarray(drawn)[:, 0]
    assert np.abs(first.mean(axis=0) - [1.0, -2.0]).max() < 4 * 2 / np.sqrt(4000)
    assert np.abs(first.std(axis=0) - 2).max() < 4 * 2 / np.sqrt(2 * 4000)


class Unused(Split):
    """A first state that nobody reads: the initial prior does not depend on it."""

    def initial_state(self, context):
        return jnp.full_like(self.centre, jnp.nan)


def test_the_state_before_the_first_step_may_be_left_out():
    model = pair()[0]
    assert model.initial_state(None).tolist() == [0, 0]
    given = Unused(model.decay, model.centre, model.log_noise, model.pull)
    data = sequences(4)

    def run(model: Walk):
        return FILTERS["always"](model, data, key=KEY, keep=KEEP)

    assert_same(fast_jit(run)(model), fast_jit(run)(given))
