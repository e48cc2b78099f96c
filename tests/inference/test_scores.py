"""Bounds of a trained run: the documented form, the paper's conventions, the same numbers for any batch size."""

import jax
import msgspec
import numpy as np
import pytest

from fivo import _scoring
from fivo.bounds import ELBO
from fivo.errors import InputError
from fivo.inference import evaluate
from fivo.runs import Reported, Score
from fivo.settings import flattened
from tests.sentences import assert_one_sentence

N = 4


@pytest.fixture(scope="module")
def result(fivo_run):
    return evaluate(fivo_run, particles=N, per_sequence=True)


def test_the_documented_form(result, fivo_run):
    assert msgspec.json.decode(msgspec.json.encode(result), type=Score) == result  # NaN would come back as None
    plain = msgspec.to_builtins(result)
    assert {"split", "particles", "bounds", "steps", "config"} <= set(plain)
    assert (result.split, result.particles, result.steps) == ("test", N, fivo_run.step)
    assert list(result.bounds) == ["elbo", "iwae", "fivo"]
    for bound in plain["bounds"].values():
        assert set(bound) == {"nats_per_step", "standard_error", "nats_per_sequence", "sequences"}
    assert result.config == flattened(fivo_run.settings)


def test_a_run_evaluates_itself(result, fivo_run):
    assert fivo_run.evaluate(particles=N, per_sequence=True) == result


def test_sums_over_the_split(result, music):
    lengths = music.lengths("test")
    for bound in result.bounds.values():
        assert len(bound.sequences) == len(lengths)
        assert bound.nats_per_step == pytest.approx(sum(bound.sequences) / lengths.sum())
        assert bound.nats_per_sequence == pytest.approx(np.mean(bound.sequences))


@pytest.mark.parametrize("batch_size", [1, 2])
def test_the_same_estimates_for_any_batch_size(result, fivo_run, batch_size):
    """In single precision; a rounded weight that flipped an ancestor would show as a difference of the order of one."""
    again = evaluate(fivo_run, particles=N, bounds=["fivo"], per_sequence=True, batch_size=batch_size)
    np.testing.assert_allclose(again.bounds["fivo"].sequences, result.bounds["fivo"].sequences, rtol=0, atol=1e-4)


def test_the_elbo_averages_over_its_samples(result, fivo_run, music):
    """Its draws of log p/q are those of N single samples, whatever N is."""
    plan = _scoring.scoring_plan(music.lengths("test"), 1)
    singles = [
        _scoring.score(fivo_run.model, ELBO(1), music.splits["test"], plan, key=jax.random.key(seed))
        for seed in range(30)
    ]
    error = np.std(singles, axis=0, ddof=1) * np.sqrt(1 / 30 + 1 / (3 * N))
    assert (np.abs(np.mean(singles, axis=0) - result.bounds["elbo"].sequences) < 4 * error).all()
    assert result.bounds["elbo"].nats_per_step < result.bounds["iwae"].nats_per_step


def test_standard_errors_are_over_repeats(result, fivo_run):
    rates = [
        evaluate(fivo_run, particles=N, bounds=["iwae"], repeats=n).bounds["iwae"].nats_per_step for n in (1, 2, 3)
    ]
    draws = np.array([rates[0], 2 * rates[1] - rates[0], 3 * rates[2] - 2 * rates[1]])
    iwae = result.bounds["iwae"]
    assert iwae.nats_per_step == pytest.approx(draws.mean())
    assert iwae.standard_error == pytest.approx(draws.std(ddof=1) / np.sqrt(3), rel=1e-5)
    single = evaluate(fivo_run, particles=N, bounds=["iwae"], repeats=1)
    assert single.bounds["iwae"].standard_error is None


def test_seeds_repeat_and_differ(result, fivo_run):
    def rate(seed):
        return evaluate(fivo_run, particles=N, bounds=["fivo"], seed=seed).bounds["fivo"].nats_per_step

    assert rate(0) == result.bounds["fivo"].nats_per_step != rate(1)


def test_what_is_reported(result, elbo_run, fivo_run):
    """FIVO for what was trained with it, the maximum over bounds for everything else."""
    assert result.reported == Reported("fivo", result.bounds["fivo"].nats_per_step)
    other = evaluate(elbo_run, particles=N)
    assert other.reported.nats_per_step == max(row.nats_per_step for row in other.bounds.values())
    partial = evaluate(fivo_run, particles=N, bounds=["elbo", "iwae"])
    assert partial.reported.bound == "iwae"


def test_progress_reaches_the_total(fivo_run):
    seen = []
    evaluate(fivo_run, particles=N, bounds=["iwae"], repeats=2, progress=lambda *told: seen.append(told))
    assert seen[-1] == ("iwae", 6, 6)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"split": "training"}, "'training'"),
        ({"particles": 0}, "particles must be at least 1, got 0"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"batch_size": 0}, "batch size must be at least 1, got 0"),
        ({"bounds": ["vae"]}, "vae"),
        ({"bounds": []}, "none"),
    ],
)
def test_bad_requests(fivo_run, arguments, part):
    with pytest.raises(InputError) as refused:
        evaluate(fivo_run, **arguments)
    assert_one_sentence(refused.value, part)


def test_an_impossible_sequence_is_named(fivo_run, monkeypatch):
    monkeypatch.setattr("fivo.inference.scores.score", lambda *args, **kwargs: np.array([-1.0, -np.inf, -1.0]))
    with pytest.raises(InputError) as refused:
        evaluate(fivo_run, particles=N)
    assert_one_sentence(refused.value, "test sequence 1")
