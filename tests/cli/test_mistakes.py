"""Every mistake of a user: exit code 2, one sentence on standard error, no traceback, nothing on standard output."""

import os
import pickle

import pytest

from tests.cli.commands import run
from tests.sentences import assert_one_sentence


class Bomb:
    def __reduce__(self):
        return os.system, ("touch exploded",)


MISTAKES = {
    "no such command": (["trian"], ["trian", "fivo --help"]),
    "no such option": (["fit", "--out", "x", "--hiden", "4"], ["--hiden", "fivo fit --help"]),
    "no value": (["fit"], ["--out"]),
    "by its other name": (["train", "--out", "x", "--hiden", "4"], ["--hiden", "--help"]),
    "a word for a number": (["fit", "--out", "x", "--hidden", "many"], ["--hidden", "many"]),
    "no such model": (["fit", "--out", "x", "--model", "hmm"], ["hmm", "vrnn"]),
    "too small a number": (["fit", "--out", "x", "--hidden", "0"], ["hidden", "0"]),
    "too many words": (["fit", "bach", "again", "--out", "x"], ["again"]),
    "a dataset twice": (["fit", "bach", "--dataset", "jsb", "--out", "x"], ["'bach'", "'jsb'"]),
    "no such dataset": (["fit", "jsbb", "--out", "x"], ["'jsbb'", "jsb"]),
    "no such configuration": (["fit", "--out", "x", "--config", "no.toml"], ["no.toml"]),
    "no module to import": (["fit", "--out", "x", "--model", "nowhere:make"], ["nowhere:make", "'nowhere'"]),
    "nothing to import": (["fit", "--out", "x", "--model", "json:make"], ["'json'", "'make'"]),
    "half a name to import": (["fit", "--out", "x", "--bound", ":make"], ["package.module:object", ":make"]),
    "a function that makes no model": (["fit", "--out", "x", "--model", "builtins:repr"], ["repr", "SequenceModel"]),
    "a bound that cannot be called": (["fit", "--out", "x", "--bound", "math:pi"], ["callable", "3.14"]),
    "a setting of another bound": (["fit", "--out", "x", "--bound", "iwae", "--resampling", "soft"], ["resampling"]),
    "a bad configuration": (["fit", "--out", "x", "--config", "bad.toml"], ["'layers'"]),
    "a pickle that calls": (["fit", "bomb.pickle", "--out", "x"], ["bomb.pickle"]),
    "a truncated file": (["fit", "--out", "x", "--dataset", "short.pickle"], ["short.pickle"]),
    "an unwritable place": (["fit", "--out", "bad.toml/x", "--hidden", "2"], ["bad.toml/x"]),
    "no run to evaluate": (["evaluate", "nowhere"], ["nowhere", "not a run directory"]),
    "no run to sample from": (["sample", "nowhere", "--out", "x.mid"], ["nowhere"]),
    "a song of another kind": (["sample", "nowhere", "--out", "x.mp3"], ["x.mp3", ".mid", ".wav"]),
    "an unknown set to fetch": (["data", "fetch", "bch"], ["bch", "bach"]),
    "a source with another content": (["data", "fetch", "jsb", "--from", "short.pickle", "--data-dir", "."], ["jsb"]),
    "an unknown set to check": (["data", "check", "bch"], ["bch"]),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FIVO_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bad.toml").write_text("layers = 3\n")
    (tmp_path / "bomb.pickle").write_bytes(pickle.dumps({"train": Bomb()}, 2))
    (tmp_path / "short.pickle").write_bytes(pickle.dumps({"train": [[(60,)]]}, 2)[:-5])
    return tmp_path


@pytest.mark.parametrize(("arguments", "parts"), MISTAKES.values(), ids=MISTAKES)
def test_one_sentence_and_exit_code_two(capsys, folder, arguments, parts):
    before = sorted(folder.rglob("*"))
    outcome = run(capsys, *arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("fivo: ")
    assert_one_sentence(outcome.err.rstrip("\n"), *parts)
    assert sorted(folder.rglob("*")) == before


def test_a_stop_by_hand_is_one_sentence(capsys, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("fivo.data.list_datasets", interrupted)
    outcome = run(capsys, "data", "list")
    assert outcome.code == 130
    assert outcome.err == "fivo: Interrupted.\n"


@pytest.mark.parametrize(
    ("arguments", "first", "names"),
    [
        (["trian"], "train", 19),
        (["compare"], "compare-gradients", 19),
        (["data", "chek"], "check", 3),
        (["xyzzy"], None, 19),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_unknown_command_names_all_there_are_and_the_nearest_first(capsys, arguments, first, names):
    said = run(capsys, *arguments).err.rstrip("\n")
    assert_one_sentence(said, f"{arguments[-1]!r} is not a command")
    listed = said.partition("` knows ")[2].partition(";")[0].split(", ")
    assert len(set(listed)) == names
    assert first is None or listed[0] == first
    assert (f"did you mean {first!r}?" in said) == (first is not None)
