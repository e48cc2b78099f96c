"""What every dataset promises, whatever it was read from."""

import subprocess
import sys

import numpy as np
import pytest

from fivo.data import SPLITS, Dataset, Scaling, load
from fivo.errors import InputError
from tests.sentences import assert_one_sentence


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
    assert Dataset.pianoroll("x", rolls(), 1).sound.step_seconds == 0.5
    assert Dataset.pianoroll("x", rolls(), 2).sound.step_seconds == 0.25
    assert load("bach").sound.step_seconds == 0.5


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), -float("inf"), 5e-324, 10**400])
@pytest.mark.parametrize("name", ["step_seconds", "steps_per_quarter"])
def test_a_step_must_be_positive(name, value):
    steps = {"step_seconds": 1.0, "steps_per_quarter": 1.0, name: value}
    with pytest.raises(InputError) as refused:
        Dataset.pianoroll("x", rolls(), **steps)
    assert_one_sentence(refused.value, f"x: `{name}` must be positive and finite, got {value!r:.40}")
    if name == "step_seconds":
        with pytest.raises(InputError) as refused:
            Dataset.waveform("x", rolls(), value)
        assert_one_sentence(refused.value, f"x: `{name}` must be positive and finite, got {value!r:.40}")


def test_a_scaling_must_be_invertible():
    for mean, deviation in ((float("nan"), 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, float("inf")), (0.0, float("nan"))):
        with pytest.raises(InputError) as refused:
            Scaling(mean, deviation)
        assert_one_sentence(refused.value, "deviation positive")


def test_it_is_shown_in_a_few_lines(tiny):
    assert repr(load("bach")).splitlines() == [
        "Dataset('bach', pianoroll, frames of 88, 0.5 s a frame,",
        "  train: 284 sequences, 15,670 frames,",
        "  valid: 57 sequences, 3,345 frames,",
        "  test: 62 sequences, 3,374 frames)",
    ]
    long = Dataset.pianoroll("x" * 10_000, dict.fromkeys(SPLITS, tuple(tiny.splits["train"]) * 10000), 2)
    assert len(repr(long)) < 300


def test_a_sequence_is_copied_unless_nobody_can_write_to_it():
    writable = np.zeros((4, 88), np.uint8)
    part = writable[:2]
    part.setflags(write=False)
    frozen = np.zeros((4, 88), np.uint8)
    frozen.setflags(write=False)
    buffered = np.frombuffer(bytearray(176), np.uint8).reshape(2, 88)
    buffered.setflags(write=False)
    given = [writable, part, buffered, frozen[1:], np.frombuffer(bytes(176), np.uint8).reshape(2, 88)]
    kept = Dataset.pianoroll("x", rolls(train=given), 2).splits["train"]
    assert [np.shares_memory(ours, theirs) for ours, theirs in zip(kept, given, strict=True)] == [False] * 3 + [
        True
    ] * 2
    assert not any(sequence.flags.writeable for sequence in kept)


def test_numbers_that_overflow_single_precision_are_refused():
    frames = {split: (np.full((1, 2), 1e300),) for split in SPLITS}
    with pytest.raises(InputError, match="train sequence 0 has entries that are not finite"):
        Dataset.waveform("x", frames, 1.0)


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
