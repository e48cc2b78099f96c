"""Note lists: what a user gets wrong is named with its split, sequence and step."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from fivo.data import load
from fivo.errors import InputError
from tests.data.files import original_pickle, pickled

GOOD = [[60, 64], []]


@pytest.mark.parametrize("write", [pickled, original_pickle])
def test_note_lists_become_pianorolls(write, tiny, tmp_path: Path):
    path = tmp_path / "music.pickle"
    path.write_bytes(write(tiny))
    dataset = load(path)
    assert dataset.fingerprint == tiny.fingerprint
    assert dataset.name == "music"
    assert dataset.kind == "pianoroll"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            {"train": [GOOD, [[60], [20]]], "valid": [GOOD], "test": [GOOD]},
            r"train sequence 1, step 1 holds note 20, not",
        ),
        ({"train": [GOOD], "valid": [[[109]]], "test": [GOOD]}, r"valid sequence 0, step 0 holds note 109, not in 21"),
        ({"train": [GOOD], "valid": [GOOD], "test": [GOOD, []]}, "test sequence 1 is empty"),
        ({"train": [GOOD], "valid": [], "test": [GOOD]}, "the valid split is empty"),
        ({"train": [GOOD], "valid": [["60"]], "test": [GOOD]}, "valid sequence 0, step 0 is a str, but a list"),
        ({"train": [GOOD], "valid": [[["C"]]], "test": [GOOD]}, "valid sequence 0, step 0 holds a str, but MIDI note"),
        ({"train": [GOOD], "valid": [[[True]]], "test": [GOOD]}, "valid sequence 0, step 0 holds a bool, but"),
        ({"train": [GOOD], "valid": [[[60] * 89]], "test": [GOOD]}, "valid sequence 0, step 0 holds 89 notes"),
        ({"train": [GOOD], "valid": [7], "test": [GOOD]}, "valid sequence 0 is a int, but a list"),
        ({"train": [GOOD], "valid": {}, "test": [GOOD]}, "valid is a dict, but a list"),
        ({"train": [GOOD], "test": [GOOD]}, r"the keys \['test', 'train'\], but a dict of train, valid and test"),
        ([GOOD], "holds a list, but a dict of train, valid and test"),
    ],
)
def test_a_mistake_is_one_sentence(content, sentence, tmp_path: Path):
    path = tmp_path / "music.pickle"
    path.write_bytes(pickle.dumps(content, 2))
    with pytest.raises(InputError, match=sentence) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_list_held_a_million_times_is_refused(tmp_path: Path):
    piece = [[60]] * 20_000
    path = tmp_path / "music.pickle"
    path.write_bytes(pickle.dumps({"train": [piece] * 5_000, "valid": [piece], "test": [piece]}, 2))
    with pytest.raises(InputError, match="becomes more than 1 GiB in memory"):
        load(path)


def test_sequences_are_read_only_frames_of_88(tiny, tmp_path: Path):
    path = tmp_path / "music.pickle"
    path.write_bytes(pickle.dumps({"train": [[[21, 108], []]], "valid": [GOOD], "test": [GOOD]}, 2))
    roll = load(path).splits["train"][0]
    assert roll.dtype == np.uint8
    assert np.argwhere(roll).tolist() == [[0, 0], [0, 87]]
    with pytest.raises(ValueError, match="read-only"):
        roll[0, 0] = 0
