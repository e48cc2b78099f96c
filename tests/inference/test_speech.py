"""Speech as the paper scores it: nats per sequence of standardised data, of raw data, and relative to a baseline."""

import json
import math

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import numpyro.distributions as dist
import pytest
from msgspec.structs import replace

import fivo
from fivo import open_run
from fivo.batch import Batch
from fivo.bounds import FIVO
from fivo.data import load
from fivo.errors import InputError
from fivo.inference import evaluate, read_baseline, relative_to
from fivo.models import VRNN, NormalEmission
from tests.fast import fast_jit
from tests.sentences import assert_one_sentence
from tests.speech import LENGTHS, SETTINGS, tiny_speech


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_speech(tmp_path_factory.mktemp("speech"))


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    return fivo.fit("vrnn", folder, out=tmp_path_factory.mktemp("runs") / "speech", progress=False, **SETTINGS)


@pytest.fixture(scope="module")
def result(run):
    return evaluate(run, particles=4, bounds=["fivo"], repeats=2, per_sequence=True)


class RawNormals(NormalEmission):
    """What Section "Evaluating TIMIT Log-Likelihoods" of the paper says: N(μ̂σ + μ, σ̂²σ²) on the samples themselves."""

    offset: jax.Array
    factor: jax.Array

    def __init__(self, train_mean, scaling):
        super().__init__(train_mean)
        self.offset, self.factor = jnp.asarray(scaling.mean), jnp.asarray(scaling.deviation)

    def features(self, x, mask):
        return super().features((x - self.offset) / self.factor, mask)

    def __call__(self, outputs):
        normal = super().__call__(outputs)
        return dist.Normal(normal.loc * self.factor + self.offset, normal.scale * self.factor)


def test_raw_data_cost_log_sigma_for_every_scored_entry(x64, folder):
    """The same filter on both forms of the data; lengths of 450, 200 and 333 samples make 3, 1 and 2 frames."""
    dataset = load(folder)
    scaling, sequences = dataset.sound.scaling, [np.asarray(x, np.float64) for x in dataset.splits["test"]]
    keys = jax.random.split(jax.random.key(1), len(sequences))

    def score(emission, frames):
        model = VRNN(emission, 4, key=jax.random.key(0))
        model = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), model)
        return fast_jit(lambda model, batch: FIVO(3)(model, batch, key=keys).log_evidence)(
            model, Batch.from_sequences(frames)
        )

    standardised = score(NormalEmission(dataset.train_mean), sequences)
    raw = score(
        RawNormals(dataset.train_mean, scaling), [frames * scaling.deviation + scaling.mean for frames in sequences]
    )
    entries = 200 * np.array([math.ceil(length / 200) for length in LENGTHS["test"]])
    np.testing.assert_allclose(raw - standardised, -entries * math.log(scaling.deviation), rtol=0, atol=1e-8)
    np.testing.assert_allclose(dataset.raw_data_offsets("test"), raw - standardised, rtol=0, atol=1e-8)


def test_both_are_reported(result, run):
    fivo_row = result.bounds["fivo"]
    entries = 200 * np.mean([math.ceil(length / 200) for length in LENGTHS["test"]])
    expected = fivo_row.nats_per_sequence - entries * math.log(run.dataset.sound.scaling.deviation)
    assert fivo_row.raw_nats_per_sequence == pytest.approx(expected, rel=1e-12)
    assert fivo_row.nats_per_sequence == pytest.approx(np.mean(fivo_row.sequences))


def test_silence_trains(run):
    assert all(np.isfinite([row["bound"], row["gradient_norm"]]).all() for row in run.directory.metrics())
    assert run.directory.metrics()[-1]["bound"] > run.directory.metrics()[0]["bound"]


def test_a_run_finds_its_recordings_again(run):
    again = open_run(run.directory.path)
    assert again.dataset.fingerprint == run.dataset.fingerprint
    assert again.settings.data.frame == 200


def shifted(result, nats):
    """The result of a run that is better by so many nats per sequence."""
    bound = result.bounds["fivo"]
    better = replace(bound, nats_per_sequence=bound.nats_per_sequence + nats)
    return replace(result, bounds={"fivo": better})


def test_relative_to_a_baseline(result):
    compared = relative_to(shifted(result, 125.0), result, "base")
    assert (compared.to, compared.bound, compared.trained_with) == ("base", "fivo", "fivo")
    assert compared.nats_per_sequence == pytest.approx(125.0)
    error = result.bounds["fivo"].standard_error * 2.0  # the test sequences have two frames on average
    assert compared.standard_error == pytest.approx(error * math.sqrt(2))
    assert relative_to(result, result, "itself").nats_per_sequence == 0


@pytest.mark.parametrize(
    ("change", "part"),
    [({"split": "train"}, "'train'"), ({"particles": 8}, "8"), ({"dataset_fingerprint": "0"}, "other data")],
)
def test_only_like_is_compared(result, change, part):
    with pytest.raises(InputError) as refused:
        relative_to(result, replace(result, **change), "other")
    assert_one_sentence(refused.value, part)


def test_a_baseline_is_a_run_or_a_saved_result(result, run, tmp_path):
    path = tmp_path / "baseline.json"
    plain = msgspec.to_builtins(result)
    path.write_text(json.dumps(plain))
    assert read_baseline(path, evaluate=pytest.fail) == result
    assert read_baseline(run.directory.path, evaluate=lambda place: replace(result, split=str(place))).split == str(
        run.directory.path
    )
    digits = json.dumps(plain)[:-1] + f', "more": {"1" * 100_000}' + "}"
    malformed = ({**plain, "bounds": 3}, {**plain, "reported": {"bound": "vae", "nats_per_step": 1.0}})
    for content in ("[]", "{}", "no", "[" * 100_000, digits, *map(json.dumps, malformed)):
        path.write_text(content)
        with pytest.raises(InputError) as refused:
            read_baseline(path, evaluate=pytest.fail)
        assert_one_sentence(refused.value, "fivo evaluate --json")
    with pytest.raises(InputError) as refused:
        read_baseline(tmp_path / "none", evaluate=pytest.fail)
    assert_one_sentence(refused.value, "cannot be read")
