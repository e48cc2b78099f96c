"""Known quantities that are not modelled: against whole joint Gaussians, and refused where nobody reads them."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import fivo
from fivo.bounds import FIVO, IWAE
from fivo.models import SRNN, VRNN, BernoulliEmission, LinearGaussian, SequenceModel, simulate
from tests.fast import fast_jit
from tests.helpers import mean_within, repeated
from tests.models.driven import DIM, LENGTHS, MATRICES, MEAN, STATE, WIDTH, B, D, linear_gaussian, recurrent, sequences
from tests.models.protocol import assert_close
from tests.oracles.moments import DenseGaussian
from tests.sentences import assert_one_sentence

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("which", MATRICES)
def test_evidence_and_moments_are_those_of_the_joint_gaussian(which, missing):
    model = linear_gaussian(**MATRICES[which])
    xs, masks, us = sequences(*LENGTHS)
    masks = masks if missing else [np.ones(x.shape, bool) for x in xs]
    batch = fivo.Batch.from_sequences(xs, inputs=us, mask=masks if missing else None, pad_to=6)
    log_evidence, filtered, smoothed = model.log_evidence(batch), model.filtered(batch), model.smoothed(batch)
    for i, (x, mask, u) in enumerate(zip(xs, masks, us, strict=True)):
        dense = DenseGaussian(model, len(x), u)
        exact, means, covariances = dense.condition(x, mask)
        np.testing.assert_allclose(log_evidence[i], exact, rtol=1e-10)
        for t in range(len(x)):
            here = slice(t * STATE, (t + 1) * STATE)
            np.testing.assert_allclose(smoothed.means[i, t], means[here], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(smoothed.covariances[i, t], covariances[here, here], rtol=1e-9, atol=1e-9)
            until_now = mask & (np.arange(len(x))[:, None] <= t)
            _, means_now, covariances_now = dense.condition(x, until_now)
            np.testing.assert_allclose(filtered.means[i, t], means_now[here], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(filtered.covariances[i, t], covariances_now[here, here], rtol=1e-9, atol=1e-9)


def test_inputs_a_step_late_have_another_evidence():
    """Whoever reads u_{t-1} or u_{t+1} in place of u_t is caught by more than 0.1 nats a step."""
    model = linear_gaussian()
    xs, _, us = sequences(8)
    exact = model.log_evidence(fivo.Batch.from_sequences(xs, inputs=us))
    for shift in (-1, 1):
        moved = fivo.Batch.from_sequences(xs, inputs=[np.roll(us[0], shift, axis=0)])
        assert abs(float(model.log_evidence(moved)[0] - exact[0])) > 0.8


def one_masked_sequence() -> fivo.Batch:
    xs, masks, us = sequences(6)
    return fivo.Batch.from_sequences(xs, inputs=us, mask=masks, pad_to=7)


@pytest.mark.parametrize("proposal", ["prior", "optimal", "learned"])
def test_the_filter_has_the_exact_evidence_on_average(proposal):
    model, batch = linear_gaussian(proposal), one_masked_sequence()
    num_particles = 4 if proposal == "optimal" else 32
    run = fast_jit(lambda model, batch, key: FIVO(num_particles, "systematic")(model, batch, key=key).log_evidence)
    drawn = run(model, repeated(batch, 4000), jax.random.key(0))
    ratios = np.exp(np.asarray(drawn) - float(model.log_evidence(batch)[0]))
    assert ratios.var() < 1
    assert mean_within(ratios, 1)
    without = LinearGaussian(**model.parameters._asdict()).log_evidence(
        fivo.Batch(batch.observations, batch.lengths, batch.mask)
    )
    assert not mean_within(ratios, np.exp(float(without[0] - model.log_evidence(batch)[0])))


@pytest.mark.parametrize("which", MATRICES)
def test_the_smoothing_proposal_has_no_variance(which):
    """p(z_t | z_{t-1}, x_t:T, u): every weight is the evidence, which no wrong or shifted input would leave so."""
    model = linear_gaussian("smoothing", **MATRICES[which])
    xs, masks, us = sequences(*LENGTHS)
    batch = fivo.Batch.from_sequences(xs, inputs=us, mask=masks, pad_to=6)
    drawn = fast_jit(jax.vmap(lambda key: IWAE(3)(model, batch, key=key).log_evidence))(
        jax.random.split(jax.random.key(1), 5)
    )
    np.testing.assert_allclose(drawn, np.tile(model.log_evidence(batch), (5, 1)), rtol=0, atol=1e-9)


def test_simulated_sequences_have_the_moments_of_the_joint_gaussian():
    model, us = linear_gaussian(), sequences(3)[2][0]
    keys = jax.random.split(jax.random.key(5), 20_000)
    drawn = fast_jit(jax.vmap(lambda key: simulate(model, 3, key=key, inputs=jnp.asarray(us))))(keys)
    dense = DenseGaussian(model, 3, us)
    z, x = (np.asarray(value).reshape(len(keys), -1) for value in drawn)
    assert mean_within(z, dense.mean)
    assert mean_within(x, dense.observed_mean)
    assert not mean_within(x, dense.emission @ dense.mean)


def test_the_joint_density_is_that_of_the_joint_gaussian():
    model = linear_gaussian()
    (x,), _, (u,) = sequences(4)
    z = np.random.default_rng(1).standard_normal((4, STATE))
    dense = DenseGaussian(model, 4, u)
    residual = x.ravel() - dense.observed_mean - dense.emission @ (z.ravel() - dense.mean)
    exact = [
        -0.5 * (np.linalg.slogdet(2 * np.pi * c)[1] + d @ np.linalg.solve(c, d))
        for d, c in ((z.ravel() - dense.mean, dense.covariance), (residual, dense.noise))
    ]
    got = model.log_joint(jnp.asarray(z), jnp.asarray(x), inputs=jnp.asarray(u))
    np.testing.assert_allclose(got, sum(exact), rtol=1e-12)


@pytest.mark.parametrize("proposal", ["optimal", "smoothing"])
def test_padding_of_the_inputs_is_not_read(proposal):
    """NaN behind the end reaches neither values nor gradients, of the filter or of the exact evidence."""
    xs, _, us = sequences(*LENGTHS)
    batch = fivo.Batch.from_sequences(xs, inputs=us, pad_to=6)
    behind = jnp.arange(6)[None, :, None] >= batch.lengths[:, None, None]
    junk = fivo.Batch(batch.observations, batch.lengths, None, jnp.where(behind, jnp.nan, batch.inputs))
    model = linear_gaussian(proposal)

    @fast_jit
    def both(model, batch):
        def total(model):
            return jnp.sum(FIVO(3)(model, batch, key=jax.random.key(0)).log_evidence + model.log_evidence(batch))

        smoothed = jax.value_and_grad(lambda model: jnp.sum(model.smoothed(batch).means[1, :3]))
        return jax.value_and_grad(total)(model), smoothed(model)

    expected, got = both(model, batch), both(model, junk)
    assert_close(got, expected, "with NaN behind the end")
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(got))


class Driven(SequenceModel):
    """A model that inherits `encode`: a walk that goes where the inputs' sum says, from the first step on."""

    log_noise: jax.Array

    def initial_state(self, context):
        return jnp.zeros(())

    def prior(self, state, context):
        return dist.Normal(0.7 * state + (0.0 if context is None else jnp.sum(context)), 1.0)

    def emission(self, state, latent, context):
        return dist.Normal(latent[None], jnp.exp(self.log_noise))


class Placed(Driven):
    """It starts where the first inputs say."""

    num_inputs: ClassVar[int] = 1

    def initial_state(self, context):
        return 5 * jnp.sum(context)


@pytest.mark.parametrize("kind", [Driven, Placed])
def test_a_model_that_inherits_encode_takes_inputs_of_any_width(kind):
    model, pf = kind(jnp.asarray(0.1)), fivo.ParticleFilter(4)
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((6, 1)), rng.standard_normal((6, 1))
    wide = np.concatenate([u - 2, u * 0 + 0.5, u * 0 + 1.5], axis=1)
    keep = ("ancestors", "latents")
    one, three = (
        pf(model, fivo.Batch.from_sequences([x], inputs=[inputs]), key=jax.random.key(0), keep=keep)
        for inputs in (u, wide)
    )
    assert_close(three, one, "inputs of the same sum")
    state = pf.init(model, key=jax.random.split(jax.random.key(0), 1)[0])
    for t in range(6):
        state, info = pf.step(model, state, jnp.asarray(x[t]), inputs=jnp.asarray(wide[t]))
        assert_close(info.latents, one.latents[0, t], f"step {t}")
    assert_close(pf.finish(state).log_evidence, one.log_evidence[0], "log evidence")


class Undeclared(Driven):
    """It starts where the first inputs say, and does not say how many there are."""

    def initial_state(self, context):
        return context[0]


def wide_batch(width: int, dim: int = len(MEAN)) -> fivo.Batch:
    inputs = [np.zeros((3, width))] if width else None
    return fivo.Batch.from_sequences([np.zeros((3, dim))], inputs=inputs)


def run(model: SequenceModel, batch: fivo.Batch) -> None:
    fivo.ParticleFilter(2)(model, batch, key=jax.random.key(0))


def stream(model: SequenceModel, inputs: np.ndarray | None) -> None:
    pf = fivo.ParticleFilter(2)
    pf.step(model, pf.init(model, key=jax.random.key(0)), jnp.zeros(len(MEAN)), inputs=inputs)


REFUSED = {
    "too wide": (lambda: run(recurrent(VRNN), wide_batch(3)), "VRNN must be given inputs of width 2"),
    "none": (lambda: run(recurrent(SRNN), wide_batch(0)), "SRNN must be given inputs of width 2", "got no inputs"),
    "some where none are read": (
        lambda: run(VRNN(BernoulliEmission(MEAN), 2, key=jax.random.key(0)), wide_batch(1)),
        "VRNN must be given no inputs",
        "got width 1",
    ),
    "too wide for the exact evidence": (
        lambda: linear_gaussian().log_evidence(wide_batch(3, DIM)),
        "LinearGaussian must be given inputs of width 2",
    ),
    "none for the exact evidence": (lambda: linear_gaussian().smoothed(wide_batch(0, DIM)), "got no inputs"),
    "too wide in a stream": (lambda: stream(recurrent(VRNN), jnp.zeros(3)), "width 2", "got width 3"),
    "none in a stream": (lambda: stream(recurrent(SRNN), None), "width 2", "got no inputs"),
    "too wide in a simulation": (
        lambda: simulate(recurrent(VRNN), 3, key=jax.random.key(0), inputs=jnp.zeros((3, 4))),
        "got width 4",
    ),
    "none in a simulation": (lambda: simulate(recurrent(VRNN), 3, key=jax.random.key(0)), "got no inputs"),
    "too few in a simulation": (
        lambda: simulate(recurrent(VRNN), 3, key=jax.random.key(0), inputs=jnp.zeros((2, WIDTH))),
        "inputs must have 3 steps",
        "got 2",
    ),
    "a state of unknown inputs in a stream": (
        lambda: stream(Undeclared(jnp.zeros(())), jnp.zeros(1)),
        "Undeclared must declare num_inputs",
    ),
    "a negative width": (
        lambda: VRNN(BernoulliEmission(MEAN), 2, num_inputs=-1, key=jax.random.key(0)),
        "num_inputs must be an integer of at least 0, got -1",
    ),
    "matrices of two widths": (
        lambda: linear_gaussian(input_matrix=B, emission_input_matrix=D[:, :1]),
        "as many columns",
        "[1, 2]",
    ),
    "a matrix of another height": (lambda: linear_gaussian(input_matrix=D), "input_matrix", "(3, ", "(2, 2)"),
    "a vector for a matrix": (lambda: linear_gaussian(emission_input_matrix=D[0]), "emission_input_matrix", "(2,)"),
    "inputs of another length": (
        lambda: fivo.Batch.from_sequences([np.zeros((3, 1))], inputs=[np.zeros((2, 1))]),
        "as long as it",
    ),
    "a sequence's inputs too few": (
        lambda: fivo.Batch.from_sequences([np.zeros((3, 1))] * 2, inputs=[np.zeros((3, 1))]),
        "one array [time, input] per sequence",
    ),
    "inputs of two widths": (
        lambda: fivo.Batch.from_sequences([np.zeros((3, 1))] * 2, inputs=[np.zeros((3, 1)), np.zeros((3, 2))]),
        "the inputs of sequence 1",
    ),
    "inputs with NaN": (
        lambda: fivo.Batch.from_sequences([np.zeros((3, 1))], inputs=[np.full((3, 1), np.nan)]),
        "inputs must be finite",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name):
    act, *parts = REFUSED[name]
    with pytest.raises(fivo.InputError) as refusal:
        act()
    assert_one_sentence(refusal.value, *parts)
