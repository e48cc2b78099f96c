"""The deep Markov model: its networks in plain numpy, and one made linear beside the Kalman filter and smoother."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import fivo
from fivo.cli import main
from fivo.inference.smoothing import impute_rows
from fivo.models import DMM, BernoulliEmission, LinearGaussian, NormalEmission
from fivo.smc import backward_simulate
from tests.fast import fast_jit
from tests.helpers import mean_within, repeated
from tests.models.cases import away_from_zero
from tests.models.driven import MEAN, WIDTH, frames
from tests.models.plain_networks import backward_run, logit, mlp, normal, sigmoid
from tests.sentences import assert_one_sentence

LATENTS, HIDDEN = 2, 3


def linear(layer, *inputs):
    return np.concatenate(inputs) @ np.concatenate([np.asarray(w) for w in layer.weights]) + np.asarray(layer.bias)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("smoothing", [False, True])
def test_two_steps_against_plain_numpy(smoothing):
    """With inputs and flags of what is missing; no bias is zero."""
    options = {"latents": LATENTS, "num_inputs": WIDTH, "gaps": True, "smoothing": smoothing}
    model = away_from_zero(DMM(BernoulliEmission(MEAN), HIDDEN, key=jax.random.key(0), **options), np.float64)
    x, mask, u = frames(3)
    sequence = fivo.Sequence(jnp.asarray(x), jnp.asarray(3), jnp.asarray(mask), jnp.asarray(u))
    context, evidence, history = model.encode(sequence)
    assert history is None
    assert model.markov
    rates = np.asarray(MEAN, np.float32).astype(np.float64)
    read = [
        mlp(model.data_encoder.network, np.where(m, f - rates, 0), (~m) * 1.0) for f, m in zip(x, mask, strict=True)
    ]
    future = backward_run(model.backward, list(zip(read, u, strict=True))) if smoothing else None
    state, z = model.initial_state(context[0]), np.zeros(LATENTS)
    rng = np.random.default_rng(3)
    for t in range(2):
        if t == 0:
            mean, scale = normal(linear(model.initial, u[0]))
            prior = model.initial_prior(state, context[0])
        else:
            moves = model.transition
            gate, proposed = sigmoid(mlp(moves.gate, z, u[t])), mlp(moves.network, z, u[t])
            mean = (1 - gate) * linear(moves.linear, z, u[t]) + gate * proposed
            _, scale = normal(np.concatenate([mean, linear(moves.scale, np.maximum(proposed, 0))]))
            prior = model.prior(state, context[t])
        np.testing.assert_allclose([prior.loc, prior.scale], [mean, scale], rtol=1e-9, atol=1e-9)
        seen = [np.tanh(linear(model.combiner, z)), read[t], *([future[t]] if smoothing else []), u[t]]
        residual, scale = normal(mlp(model.proposal_network, *seen))
        proposal = model.proposal(state, evidence[t], prior)
        np.testing.assert_allclose([proposal.loc, proposal.scale], [mean + residual, scale], rtol=1e-9, atol=1e-9)
        z = rng.standard_normal(LATENTS)
        logits = mlp(model.emission_network, np.maximum(linear(model.latent_layer, z), 0), u[t])
        # The offset is a constant in single precision.
        emission = model.emission(state, jnp.asarray(z), context[t])
        np.testing.assert_allclose(
            emission.logits, logits + logit(np.clip(rates, 1e-4, 1 - 1e-4)), rtol=1e-6, atol=1e-6
        )
        state = model.advance(state, jnp.asarray(z), None)
        np.testing.assert_array_equal(state, z)  # the state is the latent and nothing else


A, B = np.array([[0.8, 0.3], [-0.2, 0.7]]), np.array([[0.5], [-0.4]])
C, D = np.array([[1.0, 0.4], [-0.3, 0.8]]), np.array([[0.2], [0.6]])
Q, R = np.array([0.5, 0.7]), np.array([0.6, 0.9])
"""Standard deviations of z and of x."""
M, P = np.array([0.4, -0.2]), np.array([0.8, 1.1])
STEPS, PADDING, RUNS, PARTICLES = 7, 1, 300, 64


def raw(scale, shift):
    """What a network has to say for this standard deviation."""
    return np.log(np.expm1(scale - 1e-4)) - shift


def linear_pair() -> tuple[DMM, LinearGaussian]:
    """A closed gate leaves the linear map; max(a, 0) - max(-a, 0) = a is a linear emission. q keeps its networks."""
    model = DMM(NormalEmission(np.zeros(2)), 6, latents=2, num_inputs=1, key=jax.random.key(3))
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), model)
    both, signs = np.concatenate([np.eye(2), -np.eye(2)], axis=1), np.array([[1.0, -1.0]])
    set_to = {
        "initial": ((np.zeros((1, 4)),), np.concatenate([M, raw(P, 0.5)])),
        "transition.gate.output": ((np.zeros((6, 2)),), np.full(2, -80.0)),
        "transition.linear": ((A.T, B.T), np.zeros(2)),
        "transition.scale": ((np.zeros((2, 2)),), raw(Q, 0.5)),
        "latent_layer": ((np.concatenate([both, np.zeros((2, 2))], axis=1),), np.zeros(6)),
        "emission_network.hidden": (
            (np.diag([1.0] * 4 + [0.0] * 2), np.concatenate([np.zeros((1, 4)), signs], axis=1)),
            np.zeros(6),
        ),
        "emission_network.output": (
            (np.concatenate([np.concatenate([both.T @ C.T, signs.T @ D.T]), np.zeros((6, 2))], axis=1),),
            np.concatenate([np.zeros(2), raw(R, 0.25)]),
        ),
    }
    for path, (weights, bias) in set_to.items():

        def where(m, path=path):
            for name in path.split("."):
                m = getattr(m, name)
            return m.weights, m.bias

        model = eqx.tree_at(where, model, (tuple(jnp.asarray(w) for w in weights), jnp.asarray(bias)))
    exact = LinearGaussian(
        transition_matrix=A,
        transition_covariance=np.diag(Q**2),
        emission_matrix=C,
        emission_covariance=np.diag(R**2),
        initial_mean=M,
        initial_covariance=np.diag(P**2),
        input_matrix=B,
        emission_input_matrix=D,
    )
    return model, exact


@pytest.fixture(scope="module")
def runs():
    """Many filters of one sequence with inputs, missing entries and padding."""
    with jax.enable_x64(True):
        model, exact = linear_pair()
        rng = np.random.default_rng(0)
        x, u = rng.standard_normal((STEPS + PADDING, 2)), rng.standard_normal((STEPS + PADDING, 1))
        mask = rng.random(x.shape) > 0.45
        batch = fivo.Batch(jnp.asarray(x[None]), jnp.asarray([STEPS]), jnp.asarray(mask[None]), jnp.asarray(u[None]))
        pf = fivo.ParticleFilter(PARTICLES, criterion=fivo.resampling.ESSBelow(0.7))
        copies = repeated(batch, RUNS)
        keep = ("log_weights", "ancestors", "latents")
        result = fast_jit(lambda m, b: pf(m, b, key=jax.random.key(1), keep=keep))(model, copies)
        return model, exact, batch, copies, pf, result


@pytest.mark.usefixtures("x64")
def test_a_linear_one_is_the_linear_gaussian_model(runs):
    """log p(x, z), with inputs and missing entries; then E[p̂] = p with a network's proposal."""
    model, exact, batch, _, _, result = runs
    z = jnp.asarray(np.random.default_rng(1).standard_normal((STEPS, 2)))
    sequence = (batch.observations[0, :STEPS], batch.mask[0, :STEPS], batch.inputs[0, :STEPS])
    got, expected = (fast_jit(m.log_joint)(z, *sequence) for m in (model, exact))
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    ratios = np.exp(np.asarray(result.log_evidence - exact.log_evidence(batch)[0]))
    assert bool(result.resampled.any())
    assert 0 < ratios.var() < 1
    assert mean_within(ratios, 1)


@pytest.mark.usefixtures("x64")
def test_backward_simulation_has_the_moments_of_the_kalman_smoother(runs):
    model, exact, batch, copies, _, result = runs
    simulate = fast_jit(lambda m, b, r: backward_simulate(m, b, r, num_trajectories=40, key=jax.random.key(2)))
    drawn = np.asarray(simulate(model, copies, result))[:, :STEPS]
    moments = exact.smoothed(batch)
    deviation = drawn - np.asarray(moments.means)[:, :STEPS, None]
    variances = np.diagonal(np.asarray(moments.covariances)[0, :STEPS], axis1=1, axis2=2)
    for samples, truth in ((deviation.mean(axis=2), 0.0), ((deviation**2).mean(axis=2), variances)):
        error = samples.std(axis=0) / np.sqrt(RUNS)
        # The filter's own bias is O(1 / N).
        assert (np.abs(samples.mean(axis=0) - truth) < 4 * error + 2 / PARTICLES).all()


@pytest.mark.usefixtures("x64")
def test_missing_entries_are_imputed_as_the_exact_answer_has_them(runs):
    model, exact, batch, copies, pf, _ = runs
    fewer = jax.tree.map(lambda leaf: leaf[:60], copies)
    draws, distinct = impute_rows(pf, model, fewer, num_samples=20, key=jax.random.key(3))
    mean, _ = impute_rows(pf, exact, batch, num_samples=400, key=jax.random.key(3))
    found, hole = draws[:, :, :STEPS].mean(axis=1), ~np.asarray(batch.mask)[0, :STEPS]
    truth = mean[0].mean(axis=0)[:STEPS]
    error = found.std(axis=0) / np.sqrt(60)
    assert hole.sum() >= 3
    assert (np.abs(found.mean(axis=0) - truth) < 4 * error + 2 / PARTICLES)[hole].all()
    np.testing.assert_array_equal(draws[0, 0, :STEPS][~hole], np.asarray(batch.observations)[0, :STEPS][~hole])
    assert np.asarray(distinct).max() > 5


def test_sizes():
    for sizes, part in (({"hidden": 0}, "hidden"), ({"hidden": 2, "latents": 0}, "latents")):
        with pytest.raises(fivo.InputError) as refusal:
            DMM(BernoulliEmission(MEAN), key=jax.random.key(0), **sizes)
        assert_one_sentence(refusal.value, part, "got 0")
    model = DMM(BernoulliEmission(MEAN), 4, key=jax.random.key(0))
    assert model.initial_state(None).shape == (4,)


def test_a_table_is_fitted_smoothed_and_imputed(tmp_path, capsys):
    """By the commands, with the model's own name."""
    rng = np.random.default_rng(0)
    t = np.tile(np.arange(8), 12)
    level = np.repeat(rng.normal(size=12), 8) + 0.3 * t
    y, k = level + rng.normal(size=96), rng.poisson(np.exp(level / 3))
    table = pl.DataFrame({"id": np.repeat(np.arange(12), 8), "t": t, "y": y, "k": k})
    hole = pl.Series(rng.random(96) < 0.2)
    table = table.with_columns(y=pl.when(hole).then(None).otherwise(pl.col("y")))
    table.write_csv(tmp_path / "table.csv")
    options = ("--model", "dmm", "--hidden", "2", "--particles", "2", "--steps", "2", "--validate-every", "2")
    columns = ("--id", "id", "--time", "t", "--values", "y,k", "--kind-of", "k=count")
    main(["fit", str(tmp_path / "table.csv"), *columns, *options, "--out", str(tmp_path / "run")])
    for command in ("smooth", "impute"):
        out = tmp_path / f"{command}.csv"
        main([command, str(tmp_path / "run"), str(tmp_path / "table.csv"), "--out", str(out)])
        assert pl.read_csv(out).height == table.height
    filled = pl.read_csv(tmp_path / "impute.csv")
    capsys.readouterr()
    assert filled["y"].null_count() == 0 < table["y"].null_count()
    assert filled["distinct"].min() > 1
