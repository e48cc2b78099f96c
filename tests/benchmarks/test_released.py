"""benchmarks/released.py: a checkpoint of the released layout against the released architecture in plain numpy."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import fivo
from benchmarks import released
from fivo.data import load
from fivo.models import densities, read
from tests.models.plain_networks import logit, sigmoid
from tests.sentences import assert_one_sentence

H, D, T = 3, 5, 4
MEAN = np.array([0.125, 0.25, 0.0, 0.625, 1.0])
X = np.array([[0, 1, 0, 1, 1], [1, 0, 0, 0, 1], [0, 0, 0, 1, 1], [1, 1, 0, 0, 0]], np.float64)
Z = np.random.default_rng(1).standard_normal((T, H))


def checkpoint(hidden=H, dim=D, dtype=np.float64):
    """Random arrays with the names and shapes of the released ones, the unused reverse LSTM included."""
    rng = np.random.default_rng(0)
    inputs = {
        "data_encoder": (dim, hidden),
        "latent_encoder": (hidden, hidden),
        "prior_fcnet": (hidden, 2 * hidden),
        "approximate_posterior_fcnet": (2 * hidden, 2 * hidden),
        "generative_fcnet": (2 * hidden, dim),
    }
    shapes = {"lstm_cell|kernel": (3 * hidden, 4 * hidden), "lstm_cell|bias": (4 * hidden,)}
    for name, (size, outputs) in inputs.items():
        shapes |= {f"{name}|linear_0|w": (size, hidden), f"{name}|linear_0|b": (hidden,)}
        shapes |= {f"{name}|linear_1|w": (hidden, outputs), f"{name}|linear_1|b": (outputs,)}
    shapes |= {"rnn|lstm_cell|kernel": (2 * hidden, 4 * hidden), "rnn|lstm_cell|bias": (4 * hidden,)}
    arrays = {name: (0.7 * rng.standard_normal(shape)).astype(dtype) for name, shape in shapes.items()}
    return {**arrays, "global_step": np.int64(10)}


def mlp(arrays, name, *inputs):
    hidden = np.maximum(np.concatenate(inputs) @ arrays[f"{name}|linear_0|w"] + arrays[f"{name}|linear_0|b"], 0)
    return hidden @ arrays[f"{name}|linear_1|w"] + arrays[f"{name}|linear_1|b"]


def normal(outputs):
    """sigma_min is 0 in the released runs."""
    mean, raw = np.split(outputs, 2)
    return mean, np.log1p(np.exp(raw + 0.5))


def plain_log_densities(arrays, x, z, mean):
    """log p(x, z) and log q(z | x) of the released VRNN."""
    hidden, cell, code, previous = np.zeros(H), np.zeros(H), np.zeros(H), np.zeros(D)
    log_p = log_q = 0.0
    for frame, latent in zip(x, z, strict=True):
        inputs = np.concatenate([mlp(arrays, "data_encoder", previous), code, hidden])
        i, j, f, o = np.split(inputs @ arrays["lstm_cell|kernel"] + arrays["lstm_cell|bias"], 4)
        cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(j)
        hidden = sigmoid(o) * np.tanh(cell)
        prior_mean, prior_scale = normal(mlp(arrays, "prior_fcnet", hidden))
        raw_features = mlp(arrays, "data_encoder", frame)  # not centred
        residual, scale = normal(mlp(arrays, "approximate_posterior_fcnet", hidden, raw_features))
        code = mlp(arrays, "latent_encoder", latent)
        rates = sigmoid(mlp(arrays, "generative_fcnet", code, hidden) + logit(np.clip(mean, 1e-4, 1 - 1e-4)))
        log_p += stats.norm.logpdf(latent, prior_mean, prior_scale).sum() + stats.bernoulli.logpmf(frame, rates).sum()
        log_q += stats.norm.logpdf(latent, prior_mean + residual, scale).sum()
        previous = frame - mean
    return log_p, log_q


def our_log_q(model, x, z):
    return densities(model, read(model, fivo.Sequence(x, jnp.asarray(len(x)))), z).log_proposal


@pytest.mark.usefixtures("x64")
def test_a_loaded_model_has_the_released_log_densities(tmp_path):
    np.savez(tmp_path / "tiny_fivo.npz", **checkpoint())
    model, step = released.loaded(released.read_arrays(tmp_path / "tiny_fivo.npz"), MEAN)
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), model)
    log_p, log_q = plain_log_densities(checkpoint(), X, Z, MEAN)
    assert step == 10
    assert float(model.log_joint(jnp.asarray(Z), jnp.asarray(X))) == pytest.approx(log_p, rel=1e-10)
    assert float(our_log_q(model, jnp.asarray(X), jnp.asarray(Z))) == pytest.approx(log_q, rel=1e-10)


@pytest.fixture(scope="module")
def bach():
    return load("bach")


@pytest.fixture(scope="module")
def with_moments(bach):
    """Arrays of a checkpoint after ten steps whose moments are those that are then measured."""
    arrays = checkpoint(4, 88, np.float32)
    model, _ = released.loaded(arrays, bach.train_mean)
    moments, _ = released.second_moments(model, "fivo", bach, 3, 0, lambda what, done, total: None)
    return arrays | {f"{name}|Adam_1": value * (1 - 0.999**10) for name, value in moments.items()}


def test_the_whole_command(tmp_path, with_moments, capsys):
    np.savez(tmp_path / "bach_fivo.npz", **with_moments)
    options = ["--particles", "2", "--repeats", "2", "--batches", "3", "--json", str(tmp_path / "out.json")]
    assert released.main([str(tmp_path), *options]) == 0
    results = json.loads((tmp_path / "out.json").read_text())
    (row,) = results["checkpoints"]
    assert (row["dataset"], row["bound"], row["hidden"], row["step"]) == ("bach", "fivo", 4, 10)
    assert row["reported"] == {"bound": "fivo", "nats_per_step": row["bounds"]["fivo"]["nats_per_step"]}
    assert row["bounds"]["elbo"]["nats_per_step"] < row["bounds"]["fivo"]["nats_per_step"] < 0
    moments = row["moments"]
    # Adam's moments start at zero, and the stored ones are not yet corrected for it.
    assert moments["ratio"] == pytest.approx(1, rel=1e-5)
    assert len(moments["tensors"]) == 22
    assert all(tensor["correlation"] == pytest.approx(1, abs=1e-5) for tensor in moments["tensors"].values())
    assert min(tensor["control"] for tensor in moments["tensors"].values()) < 0.99  # ours, over other batches
    assert released.as_markdown(results) in capsys.readouterr().out
    assert str(tmp_path) not in results["command"]


def test_moments_of_another_gradient_differ(with_moments, bach):
    model, step = released.loaded(with_moments, bach.train_mean)
    theirs = released.stored_moments(with_moments, step)
    ours, norms = released.second_moments(model, "elbo", bach, 3, 0, lambda what, done, total: None)
    outcome = released.compare_moments(ours, norms, theirs)
    assert abs(outcome["ratio"] - 1) > 0.01
    assert min(tensor["correlation"] for tensor in outcome["tensors"].values()) < 0.999


def test_long_sequences_are_cut_into_pieces_and_nothing_is_lost():
    whole = np.arange(250)[:, None]
    cut = released.pieces([whole, whole[:100], whole[:30]])
    assert [len(piece) for piece in cut] == [100, 100, 50, 100, 30]
    np.testing.assert_array_equal(np.concatenate(cut[:3]), whole)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (None, "must hold checkpoints DATASET_BOUND.npz"),
        ({}, "'prior_fcnet|linear_0|b' of shape (hidden,), got none"),
        (checkpoint(4, 88) | {"lstm_cell|bias": np.zeros(15)}, "'lstm_cell|bias' of shape (16,), got shape (15,)"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, capsys, arrays, sentence):
    if arrays is not None:
        np.savez(tmp_path / "bach_fivo.npz", **arrays)
    assert released.main([str(tmp_path), "--particles", "1", "--repeats", "1", "--batches", "0"]) == 2
    assert_one_sentence(capsys.readouterr().err.splitlines()[-1], sentence)
