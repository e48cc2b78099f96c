"""Bad input: one sentence that says what was given and expected, or a defined result where it is no error."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import fivo
from fivo import Batch, InputError, ParticleFilter
from fivo.bounds import ELBO, FIVO, IWAE
from fivo.models import (
    BernoulliEmission,
    DiscreteHMM,
    HodgkinHuxley,
    LinearGaussian,
    Lorenz63,
    StochasticVolatility,
)
from fivo.resampling import SCHEMES, Always, ESSBelow, Every
from fivo.weights import effective_sample_size, log_mean_exp, log_sum_exp, normalize
from tests.fast import fast_jit
from tests.sentences import assert_one_sentence

X = np.zeros((3, 2))
KEY = jax.random.key(0)


def linear_gaussian(**changes):
    given = {
        "transition_matrix": 0.9 * np.eye(2),
        "transition_covariance": np.eye(2),
        "emission_matrix": np.ones((1, 2)),
        "emission_covariance": np.eye(1),
        "initial_mean": np.zeros(2),
        "initial_covariance": np.eye(2),
    }
    return LinearGaussian(**given | changes)


def hidden_markov(**changes):
    given = {
        "initial_probs": np.array([0.5, 0.5]),
        "transition_probs": np.array([[0.9, 0.1], [0.2, 0.8]]),
        "emission_probs": np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0]]),
    }
    return DiscreteHMM(**given | changes)


def small_batch():
    return Batch.from_sequences([np.zeros((3, 1)), np.ones((2, 1))])


def run(**setting):
    call = {name: setting.pop(name) for name in ("key", "keep") if name in setting}
    return ParticleFilter(**{"num_particles": 2} | setting)(linear_gaussian(), small_batch(), **{"key": KEY} | call)


REFUSED = {
    "no sequences": (lambda: Batch.from_sequences([]), "at least one"),
    "one array for a list": (lambda: Batch.from_sequences(X), "(3, 2)"),
    "one dimension": (lambda: Batch.from_sequences([np.zeros(4)]), "(4,)"),
    "three dimensions": (lambda: Batch.from_sequences([np.zeros((2, 2, 2))]), "(2, 2, 2)"),
    "a ragged sequence": (lambda: Batch.from_sequences([[[1.0], [1.0, 2.0]]]), "sequence 0"),
    "words": (lambda: Batch.from_sequences([[["a"], ["b"]]]), "sequence 0"),
    "frames of two sizes": (lambda: Batch.from_sequences([X, np.zeros((3, 4))]), "4"),
    "no frames": (lambda: Batch.from_sequences([X, np.zeros((0, 2))]), "sequence 1"),
    "NaN": (lambda: Batch.from_sequences([X, np.full((3, 2), np.nan)]), "sequence 1 holds NaN"),
    "an observed NaN": (
        lambda: Batch.from_sequences([np.full((3, 2), np.nan)], mask=[np.eye(3, 2) > 0]),
        "sequence 0 holds NaN",
    ),
    "infinity": (lambda: Batch.from_sequences([np.full((3, 2), np.inf)], missing="nan"), "infinite"),
    "a mask too few": (lambda: Batch.from_sequences([X, X], mask=[X == 0]), "mask"),
    "a mask of another shape": (lambda: Batch.from_sequences([X], mask=[np.ones((3, 1), bool)]), "mask"),
    "mask and NaN": (lambda: Batch.from_sequences([X], mask=[X == 0], missing="nan"), "got both"),
    "too little padding": (lambda: Batch.from_sequences([X], pad_to=2), "got 2"),
    "lengths beyond the end": (lambda: Batch(jnp.zeros((2, 3, 1)), jnp.array([3, 4])), "from 0 to the 3 steps"),
    "negative lengths": (lambda: Batch(jnp.zeros((2, 3, 1)), jnp.array([3, -1])), "from 0 to the 3 steps"),
    "one sequence for a batch": (lambda: Batch(jnp.zeros((3, 1)), jnp.array([3])), "[batch, time, dim]", "(3, 1)"),
    "a length too few": (lambda: Batch(jnp.zeros((2, 3, 1)), jnp.array([3])), "lengths must have shape (2,)", "(1,)"),
    "a mask of other frames": (
        lambda: Batch(jnp.zeros((2, 3, 1)), jnp.array([3, 2]), jnp.ones((2, 3, 2), bool)),
        "mask must have shape (2, 3, 1), as the observations have, got (2, 3, 2)",
    ),
    "inputs of other steps": (
        lambda: Batch(jnp.zeros((2, 3, 1)), jnp.array([3, 2]), None, jnp.zeros((2, 4, 5))),
        "inputs must have shape (2, 3, number of inputs), got (2, 4, 5)",
    ),
    "inputs without a last axis": (
        lambda: Batch(jnp.zeros((2, 3, 1)), jnp.array([3, 2]), None, jnp.zeros((2, 3))),
        "inputs must have shape (2, 3, number of inputs), got (2, 3)",
    ),
    "inputs for a model that reads none": (
        lambda: hidden_markov().log_evidence(Batch.from_sequences([np.zeros((3, 1))], inputs=[np.zeros((3, 2))])),
        "DiscreteHMM must be given no inputs",
        "got width 2",
    ),
    "whole numbers too large for JAX": (lambda: Batch.from_sequences([np.array([[2**31 + 5]])]), "int32"),
    "real numbers too large for JAX": (lambda: Batch.from_sequences([np.array([[1e300]])]), "float32"),
    "no particles": (lambda: run(num_particles=0), "num_particles must be a positive integer, got 0"),
    "no particles in a stream": (
        lambda: ParticleFilter(0).init(linear_gaussian(), key=KEY),
        "num_particles must be a positive integer, got 0",
    ),
    "no particles in FIVO": (lambda: FIVO(0), "num_particles must be a positive integer, got 0"),
    "no particles in IWAE": (lambda: IWAE(-1), "num_particles must be a positive integer, got -1"),
    "no particles in ELBO": (lambda: ELBO(0), "num_particles must be a positive integer, got 0"),
    "half a particle": (lambda: FIVO(2.5), "2.5"),
    "half a particle in a filter": (lambda: run(num_particles=2.5), "2.5"),
    "a key that is a number": (lambda: run(key=0), "key"),
    "too few keys": (lambda: run(key=jax.random.split(KEY, 3)), "(3,)"),
    "keys in a table": (lambda: run(key=jax.random.split(KEY, (2, 2))), "(2, 2)"),
    "an unknown scheme": (lambda: run(resampling="sytematic"), "sytematic"),
    "an unknown scheme of FIVO": (lambda: FIVO(4, "sytematic"), "sytematic"),
    "an unknown record": (lambda: run(keep=("weights",)), "weights"),
    "a fraction above one": (lambda: ESSBelow(1.5), "1.5"),
    "a negative fraction": (lambda: ESSBelow(-0.1), "-0.1"),
    "every zeroth step": (lambda: Every(0), "Every must be given a positive number of steps, got 0"),
    "an indefinite covariance": (
        lambda: linear_gaussian(transition_covariance=np.array([[1.0, 2.0], [2.0, 1.0]])),
        "transition_covariance is not positive definite",
    ),
    "a singular covariance": (
        lambda: linear_gaussian(initial_covariance=np.zeros((2, 2))),
        "initial_covariance is not positive definite",
    ),
    "an asymmetric covariance": (
        lambda: linear_gaussian(transition_covariance=np.array([[1.0, 0.5], [0.0, 1.0]])),
        "transition_covariance is not symmetric",
    ),
    "a covariance with NaN": (
        lambda: linear_gaussian(emission_covariance=np.full((1, 1), np.nan)),
        "emission_covariance holds NaN",
    ),
    "a matrix with infinity": (
        lambda: linear_gaussian(transition_matrix=np.full((2, 2), np.inf)),
        "transition_matrix holds NaN or infinite",
    ),
    "a matrix of the wrong shape": (
        lambda: linear_gaussian(transition_matrix=np.eye(3)),
        "transition_matrix must have shape (2, 2), as emission_matrix [dim, state] has shape (1, 2), got (3, 3)",
    ),
    "an emission matrix that is none": (lambda: linear_gaussian(emission_matrix=np.ones(2)), "(2,)"),
    "an unknown proposal of LinearGaussian": (lambda: linear_gaussian(proposal="best"), "'best'"),
    "an unknown proposal of DiscreteHMM": (lambda: hidden_markov(proposal="best"), "'best'"),
    "an unknown proposal of StochasticVolatility": (lambda: StochasticVolatility(proposal="best"), "'best'"),
    "probabilities above one": (
        lambda: hidden_markov(initial_probs=np.array([0.5, 0.6])),
        "initial_probs is not a table of probabilities",
    ),
    "negative probabilities": (
        lambda: hidden_markov(transition_probs=np.array([[1.5, -0.5], [0.2, 0.8]])),
        "transition_probs is not a table of probabilities",
    ),
    "probabilities of the wrong shape": (
        lambda: hidden_markov(transition_probs=np.array([[1.0]])),
        "transition_probs must have shape (2, 2), got (1, 1)",
    ),
    "an explosive volatility": (lambda: StochasticVolatility(persistence=(1.0,)), "between -1 and 1, got [1.0]"),
    "a negative volatility": (lambda: StochasticVolatility(scale=(-0.3,)), "positive numbers, got [-0.3]"),
    "series that differ": (lambda: StochasticVolatility(mean=(0.0, 1.0)), "(2,)"),
    "a neuron without time": (lambda: HodgkinHuxley(dt=0), "dt must be positive, got 0"),
    "voltages without a batch": (lambda: HodgkinHuxley().batch(np.zeros(3), 2), "got (3,)"),
    "observations at no step": (lambda: HodgkinHuxley().batch(np.zeros((1, 3)), 0), "every", "got 0"),
    "a fourth coordinate": (lambda: Lorenz63(observed=(3,)), "observed", "(3,)"),
    "negative noise": (lambda: Lorenz63(process_noise=-1.0), "process_noise must be positive, got -1.0"),
}


@pytest.fixture(autouse=True)
def unannotated():
    """Users run without the type checker of the tests, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name):
    act, *parts = REFUSED[name]
    with pytest.raises(InputError) as refusal:
        act()
    assert_one_sentence(refusal.value, *parts)


@pytest.fixture
def saved(tmp_path):
    """A good file and its content."""
    path, tree = tmp_path / "good.safetensors", {"a": jnp.arange(3.0), "b": jnp.ones((2, 2))}
    fivo.save(path, tree)
    return path, tree


def test_a_good_file_comes_back(saved):
    path, tree = saved
    assert jax.tree.all(jax.tree.map(np.array_equal, fivo.load(path, like=tree), tree))


@pytest.mark.parametrize(
    ("size", "part"),
    [(size, "not a whole safetensors file") for size in (0, 4, 8, 40)] + [(-1, "damaged: its checksum is wrong")],
)
def test_a_truncated_file(saved, size, part):
    path, tree = saved
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError) as refusal:
        fivo.load(path, like=tree)
    assert_one_sentence(refusal.value, str(path), part)


@pytest.mark.parametrize(
    "content",
    [b"an ordinary text file, and no arrays in it\n", b"\xff" * 64, b"\x80\x04\x95pickle.", b"PK\x03\x04" * 8],
    ids=["text", "ones", "pickle", "zip"],
)
def test_a_foreign_file(saved, content):
    path, tree = saved
    path.write_bytes(content)
    for read in (lambda: fivo.load(path, like=tree), lambda: fivo.serialization.read_metadata(path)):
        with pytest.raises(InputError) as refusal:
            read()
        assert_one_sentence(refusal.value, str(path), "not a whole safetensors file")


def test_no_file(saved):
    path, tree = saved
    with pytest.raises(InputError) as refusal:
        fivo.load(path.with_name("none"), like=tree)
    assert_one_sentence(refusal.value, "does not exist")
    with pytest.raises(InputError) as refusal:
        fivo.load(path.parent, like=tree)
    assert_one_sentence(refusal.value, str(path.parent))


@pytest.mark.parametrize(
    ("like", "part"),
    [
        ({"a": jnp.arange(3.0)}, "b"),
        ({"a": jnp.arange(3.0), "b": jnp.ones((2, 2)), "c": jnp.ones(1)}, "c"),
        ({"a": jnp.arange(4.0), "b": jnp.ones((2, 2))}, "[4]"),
        ({"a": jnp.arange(3), "b": jnp.ones((2, 2))}, "int32"),
    ],
    ids=["too few arrays", "too many arrays", "another shape", "another type"],
)
def test_a_file_of_something_else(saved, like, part):
    with pytest.raises(InputError) as refusal:
        fivo.load(saved[0], like=like)
    assert_one_sentence(refusal.value, str(saved[0]), part)


def test_all_weights_zero():
    dead = jnp.full(4, -jnp.inf)
    assert log_sum_exp(dead) == -jnp.inf
    assert log_mean_exp(dead) == -jnp.inf
    weights, total = normalize(dead)
    assert total == -jnp.inf
    np.testing.assert_allclose(jnp.exp(weights), 0.25)
    assert effective_sample_size(weights) == pytest.approx(4)
    assert np.array_equal(jax.grad(log_sum_exp)(dead), np.zeros(4))
    assert np.isfinite(jax.grad(lambda w: normalize(w)[0].sum())(dead)).all()
    for scheme in SCHEMES.values():
        ancestors = scheme(KEY, dead, 4)
        assert ((ancestors >= 0) & (ancestors < 4)).all()


@pytest.mark.parametrize(
    ("bound", "proposal"),
    [
        (FIVO(3, gradient="score"), "prior"),
        (FIVO(3, gradient="score"), "optimal"),
        (IWAE(3, gradient="latent-score"), "optimal"),
        (ELBO(3, gradient="latent-score"), "optimal"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_an_observation_of_probability_zero(bound, proposal):
    """log p̂ = -inf for that sequence only, and the gradient stays finite: the step itself adds zero to it."""
    model = hidden_markov(proposal=proposal)
    impossible, possible = np.array([[0], [2], [1]]), np.array([[0], [1], [1]])
    batch = Batch.from_sequences([impossible, possible])
    keys = jax.random.split(KEY, 2)

    def total(model):
        result = bound(model, batch, key=keys)
        return jnp.sum(result.log_evidence), result

    (_, result), gradient = fast_jit(eqx.filter_value_and_grad(total, has_aux=True))(model)
    assert result.log_evidence[0] == -jnp.inf == model.log_evidence(batch)[0]
    assert np.isfinite(result.log_evidence[1])
    assert not np.isnan(np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(result.info)])).any()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert any(np.any(leaf != 0) for leaf in jax.tree.leaves(gradient))


def test_the_filter_reports_that_all_particles_died():
    batch = Batch.from_sequences([np.array([[0], [2], [1]]), np.array([[0], [1], [1]])])
    result = fast_jit(lambda model: ParticleFilter(3)(model, batch, key=KEY, keep="log_weights"))(hidden_markov())
    assert result.alive.tolist() == [False, True]
    assert result.log_increments[0, 1] == -jnp.inf
    assert result.ess[0, 1] == 0
    for leaf in (result.log_weights, result.ess, result.particles.log_weights):
        assert not np.isnan(leaf).any()


@pytest.mark.parametrize("proposal", ["prior", "optimal", "smoothing", "learned"])
def test_an_observation_beyond_all_numbers(proposal):
    """In single precision its density underflows: the evidence is -inf, and nothing is NaN."""
    model = linear_gaussian(proposal=proposal)
    batch = Batch.from_sequences([np.array([[0.0], [1e30], [0.0]], np.float32)])
    result = fast_jit(lambda model: ParticleFilter(3)(model, batch, key=KEY))(model)
    assert result.log_evidence[0] == -jnp.inf
    assert not bool(result.alive[0])
    assert model.log_evidence(batch)[0] == -jnp.inf


def test_lengths_are_whole_numbers():
    jaxtyping.config.update("jaxtyping_disable", True)  # the annotations of the tests would refuse it first
    try:
        with pytest.raises(InputError) as caught:
            Batch(jnp.zeros((1, 3, 1)), jnp.array([2.0]))
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
    assert_one_sentence(str(caught.value), "whole numbers")


def test_a_large_number_is_no_mistake_where_it_is_missing_or_fits(x64):
    with jax.enable_x64(False):
        masked = Batch.from_sequences([np.array([[1e300], [1.0]])], mask=[np.array([[False], [True]])])
        assert np.isfinite(masked.observations).all()
    assert Batch.from_sequences([np.array([[2**40]])]).observations[0, 0, 0] == 2**40


@pytest.mark.parametrize("value", [-1.0, 0.5, 2.0])
def test_what_no_bernoulli_draws_has_probability_zero(value):
    emission = BernoulliEmission(np.array([0.3, 0.6]))(jnp.zeros(2))
    scores = emission.log_prob(jnp.array([value, 1.0]))
    assert np.isneginf(scores[0])
    np.testing.assert_allclose(scores[1], np.log(0.6), rtol=1e-6)


@pytest.mark.parametrize("ancestors", [99, 4, -1])
def test_a_resampling_function_must_name_particles(ancestors):
    def scheme(key, log_weights, num_draws):
        return jnp.full((num_draws,), ancestors, jnp.int32)

    with pytest.raises(eqx.EquinoxRuntimeError, match="ancestors from 0 to 3"):
        run(num_particles=4, resampling=scheme, criterion=Always())


@pytest.mark.parametrize(
    "scheme", [lambda key, w, n: jnp.zeros(n), lambda key, w, n: jnp.zeros(n + 1, jnp.int32), lambda key, w, n: None]
)
def test_a_resampling_function_must_return_whole_numbers(scheme):
    with pytest.raises(InputError) as caught:
        run(resampling=scheme, criterion=Always())
    assert_one_sentence(str(caught.value), "2 whole numbers")
