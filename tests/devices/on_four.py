"""Run with four simulated devices: the numbers of one, two and four devices are equal."""

import re
import sys
import tempfile

import jax
import numpy as np
import optax
from jax.sharding import AxisType

import fivo
from benchmarks.devices import collective_bytes
from fivo import ParticleFilter, _scoring
from fivo.bounds import FIVO
from fivo.data import Dataset
from fivo.devices import data_mesh
from fivo.devices.mesh import replicated
from fivo.inference.filtering import filter_rows
from fivo.inference.forecasting import forecast_rows
from fivo.smc._over_devices import run_over_devices
from fivo.training import Trainer, own_optimizer
from fivo.training.groups import trainable
from tests.devices.own64 import SETTINGS, make, sequences
from tests.fast import UNOPTIMISED

_scoring.CPU_OPTIONS = UNOPTIMISED
jax.config.update("jax_enable_x64", True)
DATA = Dataset.from_arrays(sequences(), valid=sequences(3), test=sequences(5))


def close(got: object, expected: object) -> None:
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-9, atol=1e-9)


def numbers(run: fivo.Run, mesh: object = None) -> tuple:
    scores = run.evaluate(particles=4, bounds=["fivo"], repeats=2, per_sequence=True, mesh=mesh)
    return run.history["bound"], run.history["validation"], trainable(run.model), scores.bounds["fivo"].sequences


def training() -> None:
    """Begun on four devices, continued on two, evaluated on four: as on one. The bound has a memory of its own."""
    settings = {**SETTINGS, "gradient": "score", "baseline": "moving-average"}
    one = numbers(fivo.fit(make, DATA, progress=False, **settings))
    with tempfile.TemporaryDirectory() as out:
        fivo.fit(make, DATA, progress=False, out=out, mesh=data_mesh(4), **{**settings, "steps": 10})
        mesh = jax.make_mesh((2,), ("anything",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:2])
        close(numbers(fivo.fit(make, DATA, progress=False, out=out, mesh=mesh, **settings), data_mesh(4)), one)


def micro_batches() -> None:
    split, made = DATA.splits["train"], []
    for mesh in (None, data_mesh(4)):
        trainer = Trainer(make(DATA), FIVO(2), own_optimizer(optax.adam(0.1)), average=0.9, mesh=mesh)
        batches = [_scoring.device_batch(split, np.arange(4) + i, 7, np.float64, mesh) for i in (0, 4)]
        made.append(trainer(trainer.start(), batches, jax.random.key(2), 0))
    close(*made)


def own_bound(model: object, batch: object, *, key: object) -> object:
    """A user's objective takes one key for all sequences, and knows nothing of devices."""
    return FIVO(2)(model, batch, key=key).log_evidence


def own() -> None:
    trainer = Trainer(make(DATA), own_bound, own_optimizer(optax.adam(0.1)), mesh=data_mesh(2))
    batch = _scoring.device_batch(DATA.splits["train"], np.arange(4), 7, np.float64, data_mesh(2))
    assert np.isfinite(trainer(trainer.start(), [batch], jax.random.key(2), 0)[1]["bound"])


def inference() -> None:
    model, mesh, batch = make(DATA), data_mesh(4), fivo.Batch.from_sequences(sequences())
    key, pf = jax.random.key(1), ParticleFilter(8)
    drawn = [forecast_rows(model, batch, 2, num_samples=3, key=key, mesh=m) for m in (mesh, None)]
    close(*drawn)
    close(*(filter_rows(pf, model, batch, key=key, mesh=m) for m in (mesh, None)))


def particles() -> None:
    """Exact exchange has the numbers, ancestors and derivatives of one device; islands are unbiased.

    Blocks of weights lie on one device each (128 particles), or all weights are collected.
    """
    model, batch, key = make(DATA), fivo.Batch.from_sequences(sequences(2)), jax.random.key(0)
    kept = ("ancestors", "log_weights", "latents")
    for scheme, count in (("multinomial", 64), ("systematic", 128), ("stratified", 128)):
        filters = [ParticleFilter(count, scheme, mesh=mesh) for mesh in (data_mesh(4), None)]
        got, expected = (pf(model, batch, key=key, keep=kept) for pf in filters)
        assert 0 < np.mean(expected.resampled) < 1
        assert np.array_equal(got.ancestors, expected.ancestors)
        close(got, expected)
        if count < 128:
            close(*(jax.grad(lambda m, pf=pf: pf(m, batch, key=key).log_evidence.sum())(model) for pf in filters))

    draws = 400
    alike = fivo.Batch.from_sequences(sequences(1) * draws)
    islands = ParticleFilter(8, "systematic", mesh=data_mesh(4), exchange="islands")
    found = islands(model, alike, key=jax.random.split(jax.random.key(5), draws), keep=("ancestors",))
    ratios = np.exp(np.asarray(found.log_evidence - model.log_evidence(alike)))
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(draws)
    home, islanders = np.asarray(found.ancestors) // 2, np.arange(8) // 2
    moved = np.any(home != islanders, axis=2)
    assert 0 < moved.mean() < np.mean(found.resampled)  # islands are exchanged, and less often than particles


def exchange() -> None:
    """A step sums its gradients once, as one vector; two islands need half the memory of one."""
    model, mesh = make(DATA), data_mesh(2)
    trainer = Trainer(model, FIVO(2), own_optimizer(optax.adam(0.1)), mesh=mesh)
    state, batch = trainer.start(), _scoring.device_batch(DATA.splits["train"], np.arange(4), 7, np.float64, mesh)
    given = replicated(mesh, (jax.random.key(1), np.float32(1e-3)))
    program = trainer._whole_step.lower(state, batch, *given).compile().as_text()
    parameters = jax.tree.leaves(state.parameters)
    size = sum(leaf.size for leaf in parameters)
    assert len(parameters) > 3
    assert len(re.findall(rf"f64\[{size}\]\S* all-reduce|all-reduce\S* = \(f64\[{size}\]", program)) == 1
    metrics = 5 * 8
    assert 8 * size <= collective_bytes(program) <= 8 * size + metrics

    walk, keys = fivo.Batch.from_sequences(sequences(1)), jax.random.split(jax.random.key(0), 1)
    needed = []
    for devices in (1, 2):
        pf = ParticleFilter(2**16, "systematic", mesh=data_mesh(devices), exchange="islands")
        compiled = run_over_devices.lower(pf, model, walk, keys, frozenset()).compile().compiled
        needed.append(compiled.memory_analysis().temp_size_in_bytes)
    assert needed[1] < 0.55 * needed[0]


def refusals() -> None:
    for call in (
        lambda: data_mesh(5),
        lambda: data_mesh(0),
        lambda: fivo.fit(make, DATA, progress=False, mesh=data_mesh(3), **SETTINGS),
        lambda: fivo.fit(make, DATA, progress=False, mesh="two", **SETTINGS),
        lambda: ParticleFilter(6, mesh=data_mesh(4)),
        lambda: ParticleFilter(8, "soft", mesh=data_mesh(4)),
        lambda: ParticleFilter(8, mesh=data_mesh(4), exchange="some"),
        lambda: ParticleFilter(8, mesh=data_mesh(4)).init(make(DATA), key=jax.random.key(0)),
    ):
        try:
            call()
        except fivo.InputError as problem:
            print(problem)
        else:
            raise AssertionError("nothing was refused")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
