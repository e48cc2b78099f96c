"""Speech by commands: check, train, evaluate, sample."""

import contextlib
import io
import json
import wave

import numpy as np
import pytest

from fivo.cli import main
from fivo.data import load, read_recording
from fivo.training import RunDirectory
from tests.cli.commands import run
from tests.data.sounds import noise, riff, timit_tree, write
from tests.music import options
from tests.sentences import assert_one_sentence
from tests.speech import LENGTHS, SETTINGS, tiny_speech


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_speech(tmp_path_factory.mktemp("speech"))


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "speech"
    with contextlib.redirect_stdout(io.StringIO()):
        main(["fit", str(folder), "--frame", "200", *options(SETTINGS), "--out", str(out)])
    return out


def test_the_settings_of_recordings_belong_to_the_run(capsys, trained, folder):
    assert RunDirectory(trained).config().data.frame == 200
    other = run(capsys, "fit", folder, "--frame", 100, *options(SETTINGS), "--out", trained)
    assert other.code == 2
    assert_one_sentence(other.err.rstrip("\n"), "frame=200", "100")


def test_evaluate_relative_to_a_run_and_to_its_result(capsys, trained, tmp_path):
    common = ["--particles", 4, "--bounds", "fivo", "--repeats", 2]
    shown = run(capsys, "evaluate", trained, *common, "--relative-to", trained).out
    assert "of the raw data" in shown
    assert "+0.0 ± " in shown.replace("-0.0", "+0.0")
    (tmp_path / "baseline.json").write_text(run(capsys, "evaluate", trained, *common, "--json").out)
    again = run(
        capsys, "evaluate", trained, *common, "--seed", 1, "--json", "--relative-to", tmp_path / "baseline.json"
    )
    relative = json.loads(again.out)["relative"]
    assert relative["trained_with"] == "fivo"
    assert 0 < abs(relative["nats_per_sequence"]) < 6 * relative["standard_error"]
    wrong = run(capsys, "evaluate", trained, *common, "--split", "valid", "--relative-to", tmp_path / "baseline.json")
    assert wrong.code == 2
    assert_one_sentence(wrong.err.rstrip("\n").rpartition("\n")[2], "'test'")


def sound(path) -> tuple[np.ndarray, int]:
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()


def test_samples_have_the_rate_and_level_of_the_recordings(capsys, trained, folder, tmp_path):
    outcome = run(capsys, "sample", trained, "--length", 50, "--out", tmp_path / "new.wav")
    assert outcome.code == 0, outcome.err
    assert "50 frames, 0.62 s" in outcome.out
    samples, rate = sound(tmp_path / "new.wav")
    assert (len(samples), rate) == (10_000, 16_000)
    # An almost untrained model emits standard deviations of the order of one.
    deviation = load(folder).sound.scaling.deviation
    assert 0.2 * deviation < samples.astype(float).std() < 5 * deviation


@pytest.mark.parametrize("from_file", [False, True], ids=["of the data", "a file"])
def test_a_continued_prefix_is_heard_as_it_was_recorded(capsys, trained, folder, tmp_path, from_file):
    original = folder / "test" / "0.wav"
    prefix = original if from_file else "test:0"
    outcome = run(
        capsys, "sample", trained, "--length", 4, "--prefix", prefix, "--prefix-length", 2, "--out", tmp_path / "a.wav"
    )
    assert outcome.code == 0, outcome.err
    samples, _ = sound(tmp_path / "a.wav")
    assert len(samples) == 6 * 200
    np.testing.assert_array_equal(samples[:400], read_recording(original).samples[:400])


def test_a_prefix_of_another_rate_is_converted(capsys, trained, tmp_path):
    write(tmp_path / "slow.wav", riff(noise(300), rate=8_000))
    arguments = ["--length", 4, "--prefix", tmp_path / "slow.wav", "--prefix-length", 2, "--out", tmp_path / "a.wav"]
    assert "6 frames" in run(capsys, "sample", trained, *arguments).out
    arguments[-3] = 4  # 300 samples at half the rate are 600, three frames
    assert_one_sentence(run(capsys, "sample", trained, *arguments).err.rstrip("\n"), "1 to 3")


def test_speech_is_no_music(capsys, trained, tmp_path):
    outcome = run(capsys, "sample", trained, "--out", tmp_path / "a.mid")
    assert outcome.code == 2
    assert_one_sentence(outcome.err.rstrip("\n"), "a.mid", ".wav")


def test_check(capsys, folder, tmp_path):
    counts = ", ".join(f"{split} {len(lengths)} / " for split, lengths in LENGTHS.items())
    assert counts.partition(",")[0] in run(capsys, "data", "check", folder).out
    tree = timit_tree(tmp_path / "TIMIT", ["DR1/FCJF0/SA1.WAV"], ["DR1/FAKS0/SA1.WAV"])
    outcome = run(capsys, "data", "check", "timit", "--from", tree)
    assert outcome.code == 2
    assert_one_sentence(outcome.err.rstrip("\n"), "TRAIN has 1 files of 1 speakers", "digest")
    assert run(capsys, "data", "check", "bach", "--from", tree).code == 2
    nowhere = run(capsys, "data", "check", "timit", "--data-dir", tmp_path / "nowhere")
    assert nowhere.code == 2
    assert_one_sentence(nowhere.err.rstrip("\n"), "licensed", "--from")
