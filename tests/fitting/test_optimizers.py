"""Schedules, clipping and averages: the settings agree with optax, and the average with its definition."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fivo
from fivo.bounds import FIVO
from fivo.errors import InputError
from fivo.settings import Adam
from fivo.training import Optimizer, Trainer, adam, own_optimizer
from tests.fitting.own import Pendulum
from tests.sentences import assert_one_sentence

STEPS, RATE = 20, 0.05
FEW = {"bound": FIVO(2), "batch_size": 2, "progress": False}


def path_of(optimizer: Optimizer, waves) -> np.ndarray:
    """The parameters after each step [step, parameter]."""
    batch = fivo.Batch.from_sequences(waves.splits["train"][:2])
    trainer = Trainer(Pendulum(), FIVO(2), optimizer)
    state, path = trainer.start(), []
    for step in range(STEPS):
        state, _ = trainer(state, [batch], jax.random.key(step), step)
        path.append([float(leaf) for leaf in jax.tree.leaves(trainer.parameters(state))])
    return np.array(path)


def warm(steps: int) -> Any:
    """From a first small step to the full rate at the last of `steps`: no step is of size zero."""
    return optax.linear_schedule(RATE / steps, RATE, steps - 1)


CASES = {
    "constant": ({}, optax.adam(RATE)),
    "decay": ({"weight_decay": 0.5}, optax.adamw(RATE, weight_decay=0.5)),
    "cosine": ({"schedule": "cosine"}, optax.adam(optax.cosine_decay_schedule(RATE, STEPS))),
    "warm-up": ({"warmup": 6}, optax.adam(warm(6))),
    "clip": ({"clip": 0.3}, optax.chain(optax.clip_by_global_norm(0.3), optax.adam(RATE))),
    "all": (
        {"schedule": "cosine", "warmup": 5, "clip": 0.3, "weight_decay": 0.1},
        optax.chain(
            optax.clip_by_global_norm(0.3),
            optax.adamw(
                optax.join_schedules([warm(5), optax.cosine_decay_schedule(RATE, STEPS - 5)], [5]), weight_decay=0.1
            ),
        ),
    ),
}


@pytest.mark.parametrize(("settings", "rule"), CASES.values(), ids=CASES)
def test_settings_agree_with_optax(waves, settings, rule):
    ours = path_of(adam(Adam(learning_rate=RATE, **settings), STEPS), waves)
    theirs = path_of(own_optimizer(rule), waves)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    assert np.abs(np.diff(ours, axis=0)).max() > 1e-3


def test_the_cases_differ(waves):
    """So that agreement says something: clipping, for one, happens."""
    plain = path_of(adam(Adam(learning_rate=RATE), STEPS), waves)
    for settings, _ in list(CASES.values())[1:]:
        assert np.abs(path_of(adam(Adam(learning_rate=RATE, **settings), STEPS), waves) - plain).max() > 1e-4


def test_rates_by_hand():
    rate = adam(Adam(learning_rate=1.0, schedule="cosine", warmup=4), 12).learning_rate
    assert [rate(step) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rate(8) == pytest.approx(0.5)
    assert rate(11) == pytest.approx(0.5 * (1 + math.cos(math.pi * 7 / 8)))
    only_warm = adam(Adam(learning_rate=1.0, schedule="cosine", warmup=20), 10).learning_rate
    assert [only_warm(step) for step in (0, 9)] == [0.05, 0.5]


def test_a_cosine_is_over_all_steps_and_has_no_more(waves, tmp_path):
    options = {**FEW, "schedule": "cosine", "validate_every": 5}
    fivo.fit(Pendulum(), waves, out=tmp_path, steps=10, **options)
    with pytest.raises(InputError) as refused:
        fivo.fit(Pendulum(), waves, out=tmp_path, steps=20, **options)
    assert_one_sentence(refused.value, "steps=10", "20", "--override")
    assert fivo.fit(Pendulum(), waves, out=tmp_path, steps=20, override=True, **options).result.steps == 20


def test_a_constant_rate_has_more(waves, tmp_path):
    options = {**FEW, "validate_every": 5}
    fivo.fit(Pendulum(), waves, out=tmp_path, steps=10, **options)
    assert fivo.fit(Pendulum(), waves, out=tmp_path, steps=15, **options).result.steps == 15


def test_the_average_is_the_moving_average_of_the_parameters(waves, tmp_path):
    """The same steps without an average tell every parameter, of which it is made by hand."""
    options = {**FEW, "steps": 40, "learning_rate": 0.05, "log_every": 1, "validate_every": 10}
    seen: dict[str, list[np.ndarray]] = {"plain": [], "averaged": []}

    def remember(name: str) -> Any:
        return lambda event: seen[name].append(np.array([float(leaf) for leaf in jax.tree.leaves(event.model)]))

    fivo.fit(Pendulum(), waves, out=tmp_path / "plain", callbacks=[remember("plain")], **options)
    run = fivo.fit(
        Pendulum(), waves, out=tmp_path / "averaged", average=0.9, callbacks=[remember("averaged")], **options
    )
    average = np.array([float(leaf) for leaf in jax.tree.leaves(Pendulum())])
    for step, (plain, averaged) in enumerate(zip(seen["plain"], seen["averaged"], strict=True), start=1):
        decay = min(0.9, (1 + step) / (10 + step))
        average = decay * average + (1 - decay) * plain
        np.testing.assert_allclose(averaged, average, rtol=1e-5)
    assert np.abs(seen["plain"][-1] - seen["averaged"][-1]).max() > 1e-3
    # What is stored, and what was validated, is the average.
    best = np.array([float(leaf) for leaf in jax.tree.leaves(run.model)])
    np.testing.assert_array_equal(best, seen["averaged"][run.step - 1])
    again = fivo.fit(Pendulum(), waves, out=tmp_path / "other", validation=FIVO(2), average=0.9, **options)
    assert again.result.best_validation == run.result.best_validation
    plain = fivo.open_run(tmp_path / "plain", model=Pendulum(), dataset=waves)
    assert plain.result.best_validation != run.result.best_validation
    assert bool(jnp.all(jnp.isfinite(jnp.asarray(run.history["validation"][9::10]))))
