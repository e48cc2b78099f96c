"""Twisted filters: unbiased with any twist, sharp with the exact one, and nothing new in programs without one."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.bounds import ELBO, FIVO, IWAE, SIXO
from fivo.errors import InputError
from fivo.models import (
    VRNN,
    AuxiliaryTwist,
    BernoulliEmission,
    DriftDiffusion,
    ExactTwist,
    SequenceModel,
    Twisted,
    simulate,
)
from fivo.resampling import SCHEMES, Always, Never, Schedule
from fivo.settings import Adam
from fivo.smc import (
    ParticleFilter,
    backward_simulate,
    filtered_mean,
    fixed_lag,
)
from fivo.training import Trainer, adam
from tests.covering import covering
from tests.fast import fast_jit
from tests.helpers import hidden_markov, linear_gaussian, mean_within, one_sequence, relative_evidence, repeated
from tests.sentences import assert_one_sentence
from tests.smc.twists import bad
from tests.test_unbiasedness import CRITERIA, MODELS, OneOf, unbiased

NUM_RUNS, NUM_STEPS, NUM_PARTICLES = 20_000, 6, 4


def sharp(kind: str, proposal: str = "smoothing") -> SequenceModel:
    if kind == "drift":
        return Twisted(DriftDiffusion(NUM_STEPS, jnp.asarray(0.7, float), proposal=proposal), ExactTwist())
    return Twisted((linear_gaussian if kind == "linear-gaussian" else hidden_markov)(proposal), ExactTwist())


def some_batch(model: SequenceModel, *lengths: int) -> fivo.Batch:
    """Sequences of different lengths, the last with gaps, and with what a drift diffusion misses missing."""
    xs = [np.asarray(simulate(model, n, key=jax.random.key(n)).observations) for n in lengths]
    if isinstance(model.bare, DriftDiffusion):
        return model.bare.batch(jnp.stack([x[-1, 0] for x in xs]))
    masks = [(np.arange(len(x))[:, None] % 3 != 1) | (i + 1 < len(xs)) for i, x in enumerate(xs)]
    return fivo.Batch.from_sequences(xs, mask=masks)


@covering("kind, scheme", MODELS, SCHEMES, strength=1)
def test_the_estimate_is_unbiased_whatever_the_twist(kind, scheme):
    """Against the Kalman filter and the forward algorithm, for every scheme and criterion."""
    model = Twisted(MODELS[kind](), bad())
    batch = one_sequence(model, NUM_STEPS)
    variances = []
    for i, name in enumerate(CRITERIA):
        bound = SIXO(NUM_PARTICLES, scheme, OneOf(tuple(CRITERIA.values()), jnp.asarray(i)))
        ratios = relative_evidence(bound, model, batch, NUM_RUNS, seed=i)
        assert unbiased(ratios), name
        variances.append(ratios.var())
    assert len(set(variances)) == len(CRITERIA), "the criteria must make a difference"


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", ["linear-gaussian", "hmm", "drift"])
def test_with_the_exact_lookahead_and_the_smoothing_proposal_every_weight_is_constant(kind):
    """log p̂ = log p for every N, resampling always; without the twist it is not."""
    model = sharp(kind)
    batch = some_batch(model, 6, 3, 1, 5)
    exact = np.asarray(model.log_evidence(batch))
    for num_particles in (1, 5):
        found = SIXO(num_particles, criterion=Always())(model, batch, key=jax.random.key(1))
        np.testing.assert_allclose(found.log_evidence, exact, atol=1e-9)
        active = np.arange(6) < np.asarray(batch.lengths)[:, None]
        np.testing.assert_allclose(np.asarray(found.info.ess)[active], num_particles, rtol=1e-9)
    loose = FIVO(5, criterion=Always())(model, batch, key=jax.random.key(1))
    assert np.abs(np.asarray(loose.log_evidence) - exact).max() > 1e-3


@pytest.mark.usefixtures("x64")
def test_without_resampling_a_twist_cancels():
    model = Twisted(linear_gaussian("optimal"), bad())
    batch = some_batch(model, 6, 3, 1)
    key = jax.random.key(2)
    for plain, num_particles in ((IWAE(4), 4), (ELBO(1), 1)):
        pf = ParticleFilter(num_particles, criterion=Never(), twisted=True)
        found, expected = SIXO(filter=pf)(model, batch, key=key), plain(model, batch, key=key)
        np.testing.assert_allclose(found.log_evidence, expected.log_evidence, atol=1e-9)
        apart = np.abs(np.asarray(found.info.log_increments - expected.info.log_increments)).max()
        assert apart > 1e-2, "its steps are weighed by the twist all the same"


@pytest.mark.usefixtures("x64")
def test_padding_and_the_rest_of_a_batch_change_nothing():
    """The twist is off at a sequence's own last step, not at the batch's."""
    model = Twisted(linear_gaussian("optimal"), bad())
    batch = some_batch(model, 6, 3)
    keys = jax.random.split(jax.random.key(0), 2)
    together = SIXO(4, criterion=Always())(model, batch, key=keys).log_evidence
    for i, length in enumerate((6, 3)):
        cut = (slice(i, i + 1), slice(length))
        alone = fivo.Batch(batch.observations[cut], batch.lengths[i : i + 1], batch.mask[cut])
        found = SIXO(4, criterion=Always())(model, alone, key=keys[i : i + 1]).log_evidence
        np.testing.assert_allclose(found[0], together[i], atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_values_and_gradients_are_those_of_plain_programs():
    """The loop compiler on and off, for the filter and for the importance path, where a twist has no derivative."""
    model = Twisted(linear_gaussian("learned"), bad())
    batch = some_batch(model, 5, 3)
    for criterion in (Always(), Never()):
        bound = SIXO(filter=ParticleFilter(3, criterion=criterion, twisted=True))

        def both(bound=bound):
            def total(m):
                return jnp.sum(bound(m, batch, key=jax.random.key(1)).log_evidence)

            return fast_jit(jax.value_and_grad(total))(model)

        fused = both()
        with fivo.config.fuse(False):
            plain = both()
        for a, b in zip(jax.tree.leaves(fused), jax.tree.leaves(plain), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        assert (abs(float(fused[1].twisting.strength)) > 1e-3) == bound.filter.resamples


def test_the_doubly_reparameterized_gradient_is_the_pathwise_one_on_average():
    """For a fixed schedule, twist and proposal alike; a twist read from the wrong path would show."""
    model = Twisted(linear_gaussian("learned"), bad(0.8))
    batch = repeated(one_sequence(model, 3), 4_000)
    keys = jax.random.split(jax.random.key(4), 4_000)

    def slopes(gradient: str) -> list[np.ndarray]:
        bound = SIXO(2, criterion=Schedule((0,)), gradient=gradient)

        def one(x, key):
            alone = fivo.Batch(x[None], jnp.full((1,), 3, jnp.int32))
            return eqx.filter_grad(lambda m: bound(m, alone, key=key[None]).log_evidence[0])(model)

        found = jax.jit(jax.vmap(one))(batch.observations, keys)
        return [np.asarray(found.twisting.strength), np.asarray(found.model.learned.gain)]

    for path, double in zip(slopes("pathwise"), slopes("doubly-reparameterized"), strict=True):
        assert mean_within(path - double, 0)


@pytest.mark.usefixtures("x64")
def test_smoothers_take_the_twist_out_of_the_weights():
    """Filtering means, fixed-lag means and backward trajectories of a twisted filter are those of the Kalman filter."""
    model = Twisted(linear_gaussian("optimal"), bad(1.5))
    batch = one_sequence(model, 4)
    runs = 400
    pf = ParticleFilter(200, criterion=Always(), twisted=True)
    many_copies = repeated(batch, runs)
    result = pf(model, many_copies, key=jax.random.key(0), keep=("log_weights", "ancestors", "latents"))
    exact, smooth = model.filtered(batch).means[0], model.smoothed(batch).means[0]
    assert mean_within(np.asarray(filtered_mean(result)), np.asarray(exact), sigmas=5)
    assert mean_within(np.asarray(fixed_lag(model, many_copies, result, lag=3)), np.asarray(smooth), sigmas=5)
    drawn = backward_simulate(model, many_copies, result, num_trajectories=4, key=jax.random.key(1))
    assert mean_within(np.asarray(drawn).mean(axis=2), np.asarray(smooth), sigmas=5)
    naive = np.einsum("btn,btnd->btd", np.exp(np.asarray(result.log_weights)), np.asarray(result.latents))
    assert not mean_within(naive, np.asarray(exact), sigmas=5), "the twist must make a difference"


def test_a_twist_is_refused_where_it_means_nothing():
    model = Twisted(linear_gaussian(), ExactTwist())
    batch = one_sequence(model, 3)
    key = jax.random.key(0)
    for mistake, said in (
        (lambda: SIXO(4)(linear_gaussian(), batch, key=key), "wrap it as fivo.models.Twisted"),
        (lambda: ParticleFilter(4, twisted=True).init(model, key=key), "without a twist"),
        (lambda: SIXO(filter=ParticleFilter(4)), "twisted=True"),
        (lambda: Twisted(fivo.models.StochasticVolatility(), ExactTwist()), "exact_lookahead"),
    ):
        with pytest.raises(InputError) as error:
            mistake()
        assert_one_sentence(error.value, said)
    state = ParticleFilter(4).init(model, key=key)
    ParticleFilter(4).step(model, state, batch.observations[0, 0])


def lowered(model: SequenceModel, bound: FIVO) -> str:
    """The training step as text, without the names of arguments and results."""
    trainer = Trainer(model, bound, adam(Adam(), 10))
    batch = fivo.Batch(jnp.zeros((2, 3, 4)), jnp.asarray([3, 2], jnp.int32))
    text = trainer._whole_step.lower(trainer.start(), batch, jax.random.key(0), jnp.float32(0.1)).as_text()
    return re.sub(r'jax.result_info = "[^"]*"', "", text)


@pytest.mark.parametrize("bound", [FIVO(3), IWAE(3)], ids=["fivo", "iwae"])
def test_programs_without_a_twist_are_those_of_a_filter_that_knows_none(monkeypatch, bound):
    """Byte for byte: with everything about twists taken out, and of a twisted model in a filter that does not look."""
    model = VRNN(BernoulliEmission(np.full(4, 0.3, np.float32)), 3, key=jax.random.key(0))
    now = lowered(model, bound)
    assert lowered(Twisted(model, AuxiliaryTwist()), bound) == now
    assert lowered(Twisted(model, AuxiliaryTwist()), SIXO(3)) != now
    jax.clear_caches()
    monkeypatch.setattr("fivo.smc._step.log_twist_of", lambda carried: None)
    monkeypatch.setattr("fivo.smc._result.untwisted", lambda carried: carried)
    monkeypatch.setattr("fivo.models._extend._twisted", None)
    monkeypatch.setattr("fivo.models._trajectories._ahead", None)
    assert lowered(model, bound) == now
