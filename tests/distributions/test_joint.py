"""Several latents drawn together: what is drawn, how it is scored, and which of it is discrete."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

from fivo.distributions import Joint, discrete_log_prob, log_prob
from fivo.errors import InputError
from tests.helpers import mean_within
from tests.sentences import assert_one_sentence

PROBS, CENTRES, SCALE = np.array([0.2, 0.5, 0.3]), np.array([-1.0, 0.5, 2.0]), 0.7


def regime_first() -> Joint:
    return Joint(
        regime=dist.CategoricalProbs(jnp.asarray(PROBS)),
        level=lambda z: dist.Normal(jnp.asarray(CENTRES)[z["regime"]], SCALE),
        sign=lambda z: dist.BernoulliProbs(jax.nn.sigmoid(z["level"])),
    )


def test_draws_are_those_of_every_part_given_the_ones_before():
    drawn = jax.vmap(regime_first().sample)(jax.random.split(jax.random.key(0), 20_000))
    regime, level, sign = (np.asarray(drawn[name], np.float64) for name in ("regime", "level", "sign"))
    shares = regime[:, None] == np.arange(3)
    assert mean_within(shares, PROBS)
    noise = (level - CENTRES[regime.astype(int)]) / SCALE
    assert mean_within(noise, 0)
    assert mean_within(noise**2, 1)
    assert mean_within(noise[:, None] * shares, 0), "noise of its own"
    assert mean_within(sign - 1 / (1 + np.exp(-level)), 0)
    assert mean_within((sign - 1 / (1 + np.exp(-level))) * noise, 0)


def test_scores_are_the_sum_of_the_parts():
    value = {"regime": jnp.asarray(2), "level": jnp.asarray(1.1), "sign": jnp.asarray(1)}
    expected = {
        "regime": np.log(0.3),
        "level": stats.norm(2.0, SCALE).logpdf(1.1),
        "sign": -np.log1p(np.exp(-1.1)),
    }
    got = regime_first().log_probs(value)
    assert {name: float(score) for name, score in got.items()} == pytest.approx(expected, rel=1e-5)
    assert float(log_prob(regime_first(), value)) == pytest.approx(sum(expected.values()), rel=1e-5)
    assert float(discrete_log_prob(regime_first(), value)) == pytest.approx(
        expected["regime"] + expected["sign"], rel=1e-5
    )


def test_kinds_of_single_distributions():
    assert discrete_log_prob(dist.Normal(0.0, 1.0), jnp.asarray(0.3)) == 0
    assert float(discrete_log_prob(dist.BernoulliProbs(0.25), jnp.asarray(1))) == pytest.approx(np.log(0.25), rel=1e-5)


def test_a_joint_within_a_joint():
    inner = Joint(kind=dist.BernoulliProbs(0.25), size=dist.Normal(0.0, 1.0))
    outer = Joint(inner=inner, above=lambda z: dist.Normal(z["inner"]["size"], 2.0))
    value = outer.sample(jax.random.key(0))
    assert set(value["inner"]) == {"kind", "size"}
    kind, size, above = int(value["inner"]["kind"]), float(value["inner"]["size"]), float(value["above"])
    discrete = np.log(0.25 if kind else 0.75)
    exact = discrete + stats.norm(0, 1).logpdf(size) + stats.norm(size, 2).logpdf(above)
    assert float(outer.log_prob(value)) == pytest.approx(exact, rel=1e-5)
    assert float(discrete_log_prob(outer, value)) == pytest.approx(discrete, rel=1e-5)


def test_entries_of_a_part_are_summed():
    joint = Joint(levels=dist.Normal(jnp.zeros(3), 1.0))
    value = {"levels": jnp.asarray([0.1, -0.4, 2.0])}
    assert float(joint.log_prob(value)) == pytest.approx(stats.norm.logpdf(value["levels"]).sum(), rel=1e-5)


def test_no_parts():
    with pytest.raises(InputError) as refusal:
        Joint()
    assert_one_sentence(refusal.value, "at least one part")
