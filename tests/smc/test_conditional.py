"""Conditional SMC, particle Gibbs and the evidence sandwich against exact evidence and the Kalman smoother."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo import ParticleFilter
from fivo.bounds import sandwich
from fivo.models import Twisted, draw, read_batch
from fivo.resampling import Always, ESSBelow
from fivo.smc import conditional_filter, draw_trajectory, particle_gibbs
from tests.fast import fast_jit
from tests.helpers import linear_gaussian, mean_within, one_sequence, repeated, standard_errors_off
from tests.sentences import assert_one_sentence
from tests.smc.twists import bad

NUM_STEPS, NUM_RUNS, NUM_PARTICLES = 5, 8_000, 8
NOISE = 4.0
"""Wide enough for E[1/p̂] and its variance to be finite: the likelihood falls off slower than the prior."""


@fast_jit
def posterior(batch: fivo.Batch, key: jax.Array) -> jax.Array:
    """Exact draws of z given x, one per sequence: the smoothing proposal is p(z_t | z_t-1, x_t:T)."""
    model = linear_gaussian("smoothing", NOISE)
    keys = jax.random.split(key, batch.lengths.shape[0])
    return jax.vmap(lambda reading, k: draw(model, reading, key=k))(read_batch(model, batch), keys)


@pytest.fixture
def many(x64):
    """The model, copies of one sequence padded by a step, and a fresh posterior trajectory for each."""
    model = linear_gaussian(noise=NOISE)
    batch = one_sequence(model, NUM_STEPS)
    behind = jnp.full_like(batch.observations[:, :1], jnp.nan)
    padded = fivo.Batch(jnp.concatenate([batch.observations, behind], axis=1), batch.lengths)
    copies = repeated(padded, NUM_RUNS)
    return model, batch, copies, posterior(copies, jax.random.key(5))


def moments_agree(trajectories: np.ndarray, model: fivo.models.LinearGaussian, batch: fivo.Batch) -> None:
    """Means, variances and cross-covariances of independent trajectories are those of the Kalman smoother."""
    exact = model.smoothed(batch)
    drawn = np.asarray(trajectories, np.float64)[:, :NUM_STEPS]
    assert mean_within(drawn, np.asarray(exact.means[0]))
    deviation = drawn - np.asarray(exact.means)
    products = deviation[..., :, None] * deviation[..., None, :]
    assert mean_within(products, np.asarray(exact.covariances[0]), sigmas=4.5)


def test_draws_of_the_posterior_are_exact(many):
    model, batch, _, references = many
    moments_agree(references, model, batch)


@pytest.mark.parametrize(
    ("scheme", "criterion", "ancestor_sampling"),
    [
        ("multinomial", Always(), False),
        ("multinomial", ESSBelow(0.7), True),
        ("systematic", ESSBelow(0.7), False),
        ("stratified", Always(), False),
    ],
)
def test_the_reciprocal_is_unbiased_and_the_reference_kept(many, scheme, criterion, ancestor_sampling):
    """E[1/p̂] = 1/p, and a trajectory drawn by the final weights is again a draw from the posterior."""
    model, batch, copies, references = many
    run = fast_jit(
        lambda m, b, z, k: conditional_filter(
            ParticleFilter(NUM_PARTICLES, scheme, criterion),
            m,
            b,
            z,
            key=k,
            ancestor_sampling=ancestor_sampling,
            keep=("log_weights", "ancestors", "latents"),
        )
    )
    result = run(model, copies, references, jax.random.key(1))
    log_ratios = np.asarray(result.log_evidence) - float(model.log_evidence(batch)[0])
    assert np.asarray(result.resampled)[:, : NUM_STEPS - 1].mean() > 0.1
    assert mean_within(np.exp(-log_ratios), 1)
    assert log_ratios.mean() > 4 * log_ratios.std() / np.sqrt(NUM_RUNS), "an upper bound on average"
    held = (np.asarray(result.latents) == np.asarray(references)[:, :, None]).all(axis=-1)
    assert held[:, :NUM_STEPS].any(axis=2).all()
    moments_agree(fast_jit(lambda r, k: draw_trajectory(r, key=k))(result, jax.random.key(2)), model, batch)


def test_a_conditional_filter_and_its_ancestors_take_a_twist(many):
    """E[1/p̂] = 1/p, and what it draws is from the posterior again."""
    model, batch, copies, references = many
    twisted = Twisted(model, bad(0.8))
    pf = ParticleFilter(8, criterion=Always(), twisted=True)
    run = fast_jit(
        lambda m, b, z, k: conditional_filter(
            pf, m, b, z, key=k, ancestor_sampling=True, keep=("log_weights", "ancestors", "latents")
        )
    )
    result = run(twisted, copies, references, jax.random.key(1))
    log_ratios = np.asarray(result.log_evidence) - float(model.log_evidence(batch)[0])
    assert mean_within(np.exp(-log_ratios), 1)
    moments_agree(fast_jit(lambda r, k: draw_trajectory(r, key=k))(result, jax.random.key(2)), model, batch)


def test_the_check_rejects_an_unconditional_filter(many):
    """Around a reference from anywhere else the reciprocal is not unbiased."""
    model, batch, copies, references = many
    run = fast_jit(lambda m, b, z, k: conditional_filter(ParticleFilter(NUM_PARTICLES), m, b, z, key=k))
    shifted = run(model, copies, references + 2, jax.random.key(1))
    log_ratios = np.asarray(shifted.log_evidence) - float(model.log_evidence(batch)[0])
    assert not mean_within(np.exp(-log_ratios), 1)


class NotMarkov(fivo.models.LinearGaussian):
    """The same model, keeping quiet about its structure."""

    markov = False


def test_the_whole_future_chooses_the_same_ancestors_as_the_next_step(many):
    """For a Markov model both ways differ by a constant; without the property the long one is taken."""
    model, _, copies, references = many
    few = jax.tree.map(lambda leaf: leaf[:20], (copies, references))
    quiet = NotMarkov(**model.parameters._asdict())

    def ancestors(m):
        pf = ParticleFilter(5, criterion=Always())
        run = conditional_filter(pf, m, *few, key=jax.random.key(3), ancestor_sampling=True, keep=("ancestors",))
        return run.ancestors

    short, long = (np.asarray(fast_jit(ancestors)(m)) for m in (model, quiet))
    np.testing.assert_array_equal(short, long)
    assert (short[:, 0] != np.arange(5)).any()


@pytest.mark.parametrize("ancestor_sampling", [True, False])
def test_particle_gibbs_finds_the_posterior(many, ancestor_sampling):
    """From a bad start, many independent chains: after the sweeps their last trajectories are posterior draws."""
    model, batch, copies, _ = many
    few = jax.tree.map(lambda leaf: leaf[: NUM_RUNS // 2], copies)
    start = jnp.full((NUM_RUNS // 2, NUM_STEPS + 1, 2), 2.0)
    run = fast_jit(
        lambda m, b, z, k: particle_gibbs(
            ParticleFilter(16, criterion=Always()),
            m,
            b,
            num_sweeps=12,
            key=k,
            start=z,
            ancestor_sampling=ancestor_sampling,
        )
    )
    sweeps = run(model, few, start, jax.random.key(0))
    assert sweeps.shape == (12, NUM_RUNS // 2, NUM_STEPS + 1, 2)
    off = np.abs(standard_errors_off(sweeps[0][:, :NUM_STEPS], np.asarray(model.smoothed(batch).means[0]))).max()
    assert off > 6, "the first sweep must still remember the start, or the test shows nothing"
    moments_agree(sweeps[-1], model, batch)


def test_the_sandwich_brackets_the_evidence_and_closes(x64):
    """Every replicate with its own exact posterior trajectory."""
    model = linear_gaussian(noise=NOISE)
    batch = one_sequence(model, NUM_STEPS)
    exact = float(model.log_evidence(batch)[0])
    widths = []
    for num_particles, num_runs in ((4, 4_000), (16, 4_000), (64, 2_000)):
        copies = repeated(batch, num_runs)
        both = fast_jit(lambda m, b, z, k, n=num_particles: sandwich(ParticleFilter(n), m, b, z, key=k))(
            model, copies, posterior(copies, jax.random.key(num_particles)), jax.random.key(1)
        )
        below, above = standard_errors_off(both.lower, exact), standard_errors_off(both.upper, exact)
        assert below < 4
        assert above > -4
        if num_particles == 4:
            assert below < -4
            assert above > 4
        widths.append(np.asarray(both.upper).mean() - np.asarray(both.lower).mean())
    assert widths[0] > 2.5 * widths[1] > 6 * widths[2] > 0, widths


def test_bad_references(x64):
    model = linear_gaussian()
    batch = one_sequence(model, 3)
    for scheme, arguments, part in (
        ("multinomial", {"reference": jnp.zeros((1, 4, 2))}, "(1, 4, 2)"),
        ("residual", {"reference": jnp.zeros((1, 3, 2))}, "residual"),
        ("systematic", {"reference": jnp.zeros((1, 3, 2)), "ancestor_sampling": True}, "independent"),
    ):
        with pytest.raises(fivo.InputError) as refusal:
            conditional_filter(ParticleFilter(2, scheme), model, batch, key=jax.random.key(0), **arguments)
        assert_one_sentence(refusal.value, part)
    with pytest.raises(fivo.InputError) as refusal:
        particle_gibbs(ParticleFilter(2), model, batch, num_sweeps=0, key=jax.random.key(0))
    assert_one_sentence(refusal.value, "num_sweeps", "got 0")
    result = ParticleFilter(2)(model, batch, key=jax.random.key(0), keep=("log_weights", "ancestors"))
    with pytest.raises(fivo.InputError) as refusal:
        draw_trajectory(result, key=jax.random.key(0))
    assert_one_sentence(refusal.value, "latents")
