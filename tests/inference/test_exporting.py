"""Exports beside the package's own numbers, read where the package cannot be imported."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fivo
from fivo.data import Column
from fivo.inference import export_model
from fivo.inference.filtering import filter_rows
from fivo.inference.forecasting import forecast_rows
from fivo.models import SRNN, VRNN, LinearGaussian, NormalEmission
from fivo.smc import ParticleFilter

DIM, WIDTH, BATCH, STEPS, HORIZON, PARTICLES, SAMPLES = 2, 1, 3, 4, 3, 6, 5
COLUMNS = [Column("speed", "real", 12.0, 3.0), Column("depth", "real")]
INPUTS = [Column("wind", "real", 1.0, 2.0)]
SIZES = {"num_particles": PARTICLES, "horizon": HORIZON, "num_samples": SAMPLES}
READER = Path(__file__).parent / "read_export.py"


def linear_gaussian():
    rng = np.random.default_rng(1)
    return LinearGaussian(
        transition_matrix=0.8 * np.eye(2),
        transition_covariance=np.array([[0.3, 0.1], [0.1, 0.4]]),
        emission_matrix=rng.normal(size=(DIM, 2)),
        emission_covariance=0.4 * np.eye(DIM),
        initial_mean=np.array([0.3, -0.1]),
        initial_covariance=np.eye(2),
        input_matrix=rng.normal(size=(2, WIDTH)),
        emission_input_matrix=rng.normal(size=(DIM, WIDTH)),
        proposal="optimal",
    )


def network(kind, **options):
    return kind(NormalEmission(np.zeros(DIM)), 3, num_inputs=WIDTH, key=jax.random.key(0), **options)


MODELS = {"LinearGaussian": linear_gaussian, "VRNN": lambda: network(VRNN)}


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    mask = rng.random((BATCH, STEPS, DIM)) > 0.2
    keys = jax.random.split(jax.random.key(0), BATCH)
    return {
        "keys": np.asarray(jax.random.key_data(keys)),
        "x": np.where(mask, rng.normal(size=mask.shape), 0),
        "mask": mask,
        "lengths": np.array([STEPS, 2, STEPS - 1], np.int32),
        "inputs": rng.normal(size=(BATCH, STEPS, WIDTH)),
        "future_inputs": rng.normal(size=(BATCH, HORIZON, WIDTH)),
    }


@pytest.mark.parametrize("name", MODELS)
def test_programs_say_what_the_package_says(name, tmp_path, x64):
    model, given = MODELS[name](), arrays()
    export_model(tmp_path / "model.stablehlo", model, columns=COLUMNS, input_columns=INPUTS, **SIZES)
    np.savez(tmp_path / "given.npz", **given)
    command = [sys.executable, READER, "model.stablehlo", "given.npz", "made.npz"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [name, "[]"]
    made = dict(np.load(tmp_path / "made.npz"))
    batch = fivo.Batch(*(jnp.asarray(given[part]) for part in ("x", "lengths", "mask", "inputs")))
    keys = jax.random.wrap_key_data(given["keys"])
    pf = ParticleFilter(PARTICLES, "systematic")
    exact = isinstance(model, LinearGaussian)
    score = model.log_increments(batch) if exact else pf(model, batch, key=keys).log_increments
    assert_equal(made["score"], score)
    future = {"inputs": given["future_inputs"], "num_samples": SAMPLES, "num_particles": PARTICLES}
    assert_equal(made["forecast"], forecast_rows(model, batch, HORIZON, key=keys, **future))
    rows = filter_rows(pf, model, batch, key=keys)
    active = np.arange(STEPS)[None, :] < given["lengths"][:, None]
    for part in rows._fields:
        assert_equal(made[f"step_{part}"][active], np.asarray(getattr(rows, part))[active])


def assert_equal(made, expected):
    assert np.isfinite(made).all()
    np.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-9)


def test_a_smoothing_model_for_hardware_that_is_not_here(tmp_path):
    path = tmp_path / "model.stablehlo"
    model = network(SRNN, smoothing=True)
    about = export_model(path, model, columns=COLUMNS, input_columns=INPUTS, platforms=["cpu", "cuda", "tpu"], **SIZES)
    assert list(about["programs"]) == ["score", "forecast"]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("about.json")) == about
        program = jax.export.deserialize(bytearray(archive.read("score.bin")))
    assert program.platforms == ("cpu", "cuda", "tpu")
    given = {name: jnp.asarray(array) for name, array in arrays().items()}
    parts = [given[part] for part in ("x", "lengths", "mask", "inputs")]
    made = program.call(given["keys"], parts[0], parts[2], parts[1], parts[3])["log_likelihood"]
    pf = ParticleFilter(PARTICLES, "systematic")
    expected = pf(model, fivo.Batch(*parts), key=jax.random.wrap_key_data(given["keys"])).log_increments
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-4)
    assert about["columns"][0] == {"name": "speed", "kind": "real", "shift": 12.0, "scale": 3.0, "categories": []}
    assert about["programs"]["score"]["arguments"]["x"] == {"shape": ["b", "t", DIM], "dtype": "float32"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"platforms": ["gpu"]}, "platforms must be some of cpu, cuda"),
        ({"platforms": []}, "platforms must be some of"),
        ({"num_particles": 1}, "num_particles must be a whole number of at least 2"),
        ({"horizon": 0}, "horizon must be"),
        ({"quantiles": [1.5]}, "between 0 and 1"),
    ],
)
def test_what_is_refused(options, words, tmp_path):
    with pytest.raises(fivo.InputError, match=words):
        export_model(tmp_path / "model.stablehlo", linear_gaussian(), columns=COLUMNS, **options)
    assert not any(tmp_path.iterdir())


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(fivo.InputError, match="is a folder"):
        export_model(tmp_path, linear_gaussian(), columns=COLUMNS)
