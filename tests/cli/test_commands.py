"""Fit, evaluate, sample: thin commands over what other tests look at closely."""

import contextlib
import io
import json
import wave

import mido
import pytest

from fivo.cli import main
from fivo.data import read_midi
from fivo.settings import make_settings
from fivo.training import RunDirectory
from tests.cli.commands import run
from tests.music import SETTINGS, options
from tests.sentences import assert_one_sentence
from tests.training.runs import arrays


@pytest.fixture(scope="module")
def trained(tmp_path_factory, music_file):
    """A run made by the command from a file of settings, and what was said."""
    directory = tmp_path_factory.mktemp("trained")
    lines = [f'dataset = "{music_file}"', *(f"{name} = {value}" for name, value in SETTINGS.items()), "seed = 9"]
    (directory / "settings.toml").write_text("\n".join(lines))
    with contextlib.redirect_stdout(io.StringIO()) as said:
        main(["fit", "--config", str(directory / "settings.toml"), "--seed", "0", "--out", str(directory / "run")])
    return directory / "run", said.getvalue()


def test_fit_says_what_came_of_it(trained, fivo_run, music_file):
    directory, said = trained
    assert "done after 120 steps" in said
    assert str(directory) in said
    # The same settings, by another way and on data from a file: the same run.
    assert arrays(RunDirectory(directory)) == arrays(fivo_run.directory)


def test_options_win_over_the_file(trained, music_file):
    directory, _ = trained
    assert RunDirectory(directory).config() == make_settings({"dataset": str(music_file), **SETTINGS})


def test_the_same_command_continues_and_another_is_refused(capsys, trained, music_file):
    directory, _ = trained
    again = run(capsys, "fit", music_file, *options(SETTINGS), "--out", directory)
    assert again.code == 0, again.err
    other = run(capsys, "train", *options({"dataset": music_file, **SETTINGS, "seed": 3}), "--out", directory)
    assert other.code == 2
    assert_one_sentence(other.err.rstrip("\n"), "seed=0", "3")


def test_evaluate_prints_one_object(capsys, trained):
    directory, _ = trained
    outcome = run(capsys, "evaluate", directory, "--particles", 4, "--json", "--sequences", "--batch-size", 2)
    assert outcome.code == 0
    result = json.loads(outcome.out, parse_constant=pytest.fail)
    assert set(result["bounds"]) == {"elbo", "iwae", "fivo"}
    assert len(result["bounds"]["fivo"]["sequences"]) == 3


def test_evaluate_prints_a_table(capsys, trained):
    directory, _ = trained
    outcome = run(capsys, "evaluate", directory, "--particles", 4, "--bounds", "FIVO, iwae", "--repeats", 1)
    assert "FIVO" in outcome.out
    assert "IWAE" in outcome.out
    assert "ELBO" not in outcome.out
    assert "reported as in the paper" in outcome.out
    assert run(capsys, "evaluate", directory, "--bounds", "vae").code == 2
    assert run(capsys, "evaluate", directory, "--split", "tset").code == 2


@pytest.mark.parametrize("prefix", [None, "test:1", "file"])
def test_sample_writes_music_sound_and_picture(capsys, trained, tmp_path, prefix):
    directory, _ = trained
    options, before = [], 0
    if prefix == "file":
        song = mido.MidiFile(ticks_per_beat=480)
        song.tracks.append(
            mido.MidiTrack([mido.Message("note_on", note=60), mido.Message("note_off", note=60, time=960)])
        )
        song.save(tmp_path / "start.mid")
        options, before = ["--prefix", tmp_path / "start.mid"], 4
    elif prefix is not None:
        options, before = ["--prefix", prefix, "--prefix-length", 3], 3
    outcome = run(capsys, "sample", directory, "--length", 5, "--out", tmp_path / "piece.mid", *options)
    assert outcome.code == 0, outcome.err
    assert f"{before + 5} steps" in outcome.out
    assert mido.MidiFile(tmp_path / "piece.mid").length > 0
    with wave.open(str(tmp_path / "piece.wav")) as sound:
        assert sound.getnframes() > 0
    assert (tmp_path / "piece.png").read_bytes()[:4] == b"\x89PNG"
    if prefix == "file":
        roll = read_midi(tmp_path / "piece.mid", 2)
        assert roll[:4, 60 - 21].all()


def test_a_seed_repeats_a_sample(capsys, trained, tmp_path):
    directory, _ = trained
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(capsys, "sample", directory, "--length", 5, "--seed", seed, "--out", tmp_path / f"{name}.mid")
    songs = [(tmp_path / f"{name}.mid").read_bytes() for name in "abc"]
    assert songs[0] == songs[1] != songs[2]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--prefix", "test:99"], "0 to 2"),
        (["--prefix", "test:-1"], "'test:-1'"),
        (["--prefix", "nothing.mid"], "'nothing.mid'"),
        (["--prefix", "test:0", "--prefix-length", "9"], "1 to 6"),
        (["--prefix", "test:0", "--prefix-length", "0"], "1 to 6"),
        (["--length", "0"], "length must be at least 1, got 0"),
    ],
)
def test_bad_prefixes(capsys, trained, tmp_path, arguments, part):
    directory, _ = trained
    outcome = run(capsys, "sample", directory, "--out", tmp_path / "piece.mid", *arguments)
    assert outcome.code == 2
    assert_one_sentence(outcome.err.rstrip("\n"), part)
    assert not (tmp_path / "piece.mid").exists()
