"""Recurrent models with inputs and flags of what is missing: against plain numpy, and the same run as a stream."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.models import SRNN, VRNN, SequenceModel, simulate
from fivo.models._check import _causality, _one_frame_at_a_time
from tests.fast import fast_jit
from tests.models.driven import DIM, HIDDEN, MEAN, NUM_FRAMES, WIDTH, frames, linear_gaussian, recurrent
from tests.models.plain_networks import backward_run, logit, lstm, mlp, normal
from tests.models.protocol import assert_close

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("smoothing", [False, True])
@pytest.mark.parametrize("kind", [VRNN, SRNN])
def test_two_steps_against_plain_numpy(kind, smoothing):
    """Every network reads u_t as its last input but the LSTM, whose last is its own state; before the first, zero."""
    model = recurrent(kind, smoothing)
    x, mask, u = frames(3)
    sequence = fivo.Sequence(jnp.asarray(x), jnp.asarray(3), jnp.asarray(mask), jnp.asarray(u))
    context, evidence, history = model.encode(sequence)
    rates = np.asarray(MEAN, np.float32).astype(np.float64)
    read = [
        mlp(model.data_encoder.network, np.where(m, f - rates, 0), (~m) * 1.0) for f, m in zip(x, mask, strict=True)
    ]
    silence = mlp(model.data_encoder.network, np.zeros(len(MEAN)), np.zeros(len(MEAN)))
    zeros, quiet = np.zeros(HIDDEN), np.zeros(WIDTH)
    with_latent = kind is VRNN

    def recur(hidden, cell, phi, code, inputs):
        return lstm(model.recurrence, hidden, cell, phi, *([code] if with_latent else []), inputs)

    hidden, cell = recur(zeros, zeros, silence, zeros, quiet)
    hiddens = [(hidden, cell)]
    if not with_latent:
        for phi, now in zip(read[:-1], u[:-1], strict=True):
            hiddens.append(recur(*hiddens[-1], phi, None, now))
        future = (
            backward_run(model.backward, [(h, f) for (h, _), f in zip(hiddens, read, strict=True)])
            if smoothing
            else None
        )
    else:
        future = backward_run(model.backward, [(f,) for f in read]) if smoothing else None
    state, code = model.initial_state(jax.tree.map(lambda leaf: leaf[0], context)), zeros
    rng = np.random.default_rng(3)
    for t in range(2):
        if not with_latent:
            hidden, cell = hiddens[t]
        before = [hidden] if with_latent else [hidden, code]
        latent = rng.standard_normal(HIDDEN)
        context_t = jax.tree.map(lambda leaf, t=t: leaf[t], context)
        mean, scale = normal(mlp(model.prior_network, *before, u[t]))
        prior = model.prior(state, context_t)
        np.testing.assert_allclose([prior.loc, prior.scale], [mean, scale], rtol=1e-9, atol=1e-9)
        seen = [*before, read[t], *([future[t]] if smoothing else []), u[t]]
        residual, scale = normal(mlp(model.proposal_network, *seen))
        proposal = model.proposal(state, evidence[t], prior)
        np.testing.assert_allclose([proposal.loc, proposal.scale], [mean + residual, scale], rtol=1e-9, atol=1e-9)
        code = mlp(model.latent_encoder, latent)
        logits = mlp(model.emission_network, code, hidden, u[t]) + logit(np.clip(rates, 1e-4, 1 - 1e-4))
        # The offset is a constant in single precision.
        emission = model.emission(state, jnp.asarray(latent), context_t)
        np.testing.assert_allclose(emission.logits, logits, rtol=1e-6, atol=1e-6)
        if with_latent:
            hidden, cell = recur(hidden, cell, read[t], code, u[t])
        state = model.advance(state, jnp.asarray(latent), None if history is None else history[t])


def models() -> dict[str, SequenceModel]:
    return {"VRNN": recurrent(VRNN), "SRNN": recurrent(SRNN), "linear-Gaussian": linear_gaussian("optimal")}


@pytest.mark.parametrize("name", ["VRNN", "SRNN", "linear-Gaussian"])
def test_a_stream_with_inputs_goes_on_where_its_prefix_ended(name, tmp_path):
    """Half a sequence, saved and loaded, then the other half: the numbers of the filter on the whole."""
    model, pf = models()[name], fivo.ParticleFilter(5, "systematic", fivo.resampling.ESSBelow(0.9))
    x, mask, u = (jnp.asarray(part) for part in frames())
    if name == "linear-Gaussian":
        x, mask = x[:, :DIM], mask[:, :DIM]
    key = jax.random.key(4)
    batch = fivo.Batch(x[None], jnp.asarray([NUM_FRAMES]), mask[None], u[None])
    whole = fast_jit(lambda m, b, k: pf(m, b, key=k, keep=("log_weights", "ancestors", "latents")))(
        model, batch, key[None]
    )
    assert bool(whole.resampled.any())
    step = fast_jit(lambda model, state, x, mask, u: pf.step(model, state, x, mask=mask, inputs=u))
    state = pf.init(model, key=key)
    for t in range(NUM_FRAMES):
        if t == NUM_FRAMES // 2:
            fivo.save(tmp_path / "half", state)
            state = fivo.load(tmp_path / "half", like=pf.init(model, key=key))
        state, info = step(model, state, x[t], mask[t], u[t])
        got = (info.log_increment, info.log_weights, info.ancestors, info.latents)
        records = (whole.log_increments, whole.log_weights, whole.ancestors, whole.latents)
        assert_close(got, jax.tree.map(lambda leaf, t=t: leaf[0, t], records), f"step {t}")
    assert_close(pf.finish(state).log_evidence, whole.log_evidence[0], "log evidence")
    moved = fast_jit(lambda m, b, k: pf(m, b, key=k).log_evidence)(
        model, fivo.Batch(x[None], batch.lengths, mask[None], jnp.roll(u, 1, axis=0)[None]), key[None]
    )
    assert abs(float(moved[0] - whole.log_evidence[0])) > 1e-3, "the inputs must matter"


@pytest.mark.parametrize("name", ["VRNN", "SRNN", "linear-Gaussian"])
def test_one_frame_at_a_time_agrees_with_encode(name):
    """And neither looks at inputs that come later: two of the contract's own checks, which have little to compile."""
    x, _, u = frames(5)
    x = x[:, : DIM if name == "linear-Gaussian" else None]
    sequence = fivo.Sequence(jnp.asarray(x), jnp.asarray(5, jnp.int32), None, jnp.asarray(u))
    for check in (_one_frame_at_a_time, _causality):
        assert check(models()[name], sequence, jax.random.key(0)) is None


def test_with_inputs_every_check_passes():
    x, _, u = frames(5)
    report = fivo.models.check_model(models()["VRNN"], fivo.Batch.from_sequences([x], inputs=[u]))
    assert report.ok, str(report)


@pytest.mark.parametrize("name", ["VRNN", "SRNN"])
def test_simulations_take_inputs(name):
    model = models()[name]
    u = jnp.asarray(frames()[2])
    run = fast_jit(lambda u: simulate(model, NUM_FRAMES, key=jax.random.key(0), inputs=u))
    drawn, other = run(u), run(3 * u)
    assert drawn.observations.shape == (NUM_FRAMES, len(MEAN))
    assert bool(jnp.any(drawn.latents != other.latents))
    later = run(u.at[4:].add(1.0))
    np.testing.assert_array_equal(later.latents[:4], drawn.latents[:4])
    assert bool(jnp.any(later.latents[4] != drawn.latents[4]))
