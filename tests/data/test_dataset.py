"""What every dataset promises, whatever it was read from."""

import subprocess
import sys

import numpy as np
import pytest

from fivo.data import SPLITS, Dataset, load
from fivo.errors import InputError


def rolls(**changes):
    return {split: changes.get(split, [np.zeros((2, 88), np.uint8)]) for split in SPLITS}


def test_train_mean_is_the_mean_over_all_frames(tiny):
    np.testing.assert_allclose(tiny.train_mean, np.concatenate(tiny.splits["train"]).mean(axis=0))
    assert tiny.train_mean.dtype == np.float64


def test_the_fingerprint_depends_on_content_only(tiny):
    renamed = Dataset.pianoroll("other", tiny.splits, 4)
    assert renamed.fingerprint == tiny.fingerprint
    changed = [roll.copy() for roll in tiny.splits["test"]]
    changed[-1][-1, -1] ^= 1
    assert Dataset.pianoroll("tiny", {**tiny.splits, "test": changed}, 2).fingerprint != tiny.fingerprint


def test_the_fingerprint_sees_where_sequences_end(tiny):
    frames = np.concatenate(tiny.splits["train"])
    cut = {**tiny.splits, "train": [frames[:5], frames[5:9], frames[9:]]}
    moved = {**tiny.splits, "train": [frames[:5], frames[5:8], frames[8:]]}
    assert Dataset.pianoroll("x", moved, 2).fingerprint == tiny.fingerprint
    assert Dataset.pianoroll("x", cut, 2).fingerprint != tiny.fingerprint


def test_counts_and_lengths(tiny):
    assert tiny.counts == {"train": (3, 17), "valid": (1, 4), "test": (2, 9)}
    assert tiny.lengths("test").tolist() == [2, 7]
    with pytest.raises(InputError, match="no split 'dev'; use one of train, valid, test"):
        tiny.lengths("dev")


def test_a_step_lasts_as_long_as_its_note():
    assert Dataset.pianoroll("x", rolls(), 1).step_seconds == 0.5
    assert Dataset.pianoroll("x", rolls(), 2).step_seconds == 0.25
    assert load("bach").step_seconds == 0.5


def test_nothing_can_be_changed(tiny):
    with pytest.raises(TypeError):
        tiny.splits["train"] = ()
    with pytest.raises(AttributeError):
        tiny.name = "x"


def test_splits_must_be_the_three(tiny):
    with pytest.raises(InputError, match="train, valid and test are needed"):
        Dataset.pianoroll("x", {"train": tiny.splits["train"]}, 2)


def test_importing_and_loading_needs_no_jax():
    code = "import sys, fivo.data; fivo.data.load('bach'); print({'jax', 'scipy', 'mido'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
