"""The chorales that are shipped with the package."""

import numpy as np

from fivo.data import LOWEST_NOTE, SPLITS, load
from fivo.data.loading import locate


def test_the_embedded_chorales_are_complete_and_small():
    dataset = load("bach")
    assert dataset.counts == {"train": (284, 15670), "valid": (57, 3345), "test": (62, 3374)}
    assert dataset.sound.steps_per_quarter == 1
    assert locate("bach").stat().st_size < 45_000


def test_every_chorale_has_four_voices():
    frames = np.concatenate([roll for split in SPLITS for roll in load("bach").splits[split]])
    voices = frames.sum(axis=1)
    assert voices.max() == 4
    assert (voices >= 3).mean() > 0.98
    sounding = np.flatnonzero(frames.any(axis=0)) + LOWEST_NOTE
    assert (sounding.min(), sounding.max()) == (31, 84)


def test_silence_is_short_and_never_at_the_ends():
    for split in SPLITS:
        for roll in load("bach").splits[split]:
            silent = ~roll.any(axis=1)
            assert not silent[0]
            assert not silent[-1]
            assert not (silent[1:] & silent[:-1]).any()


def test_no_chorale_and_no_melody_straddles_the_splits():
    seen: dict[bytes, str] = {}
    for split in SPLITS:
        for roll in load("bach").splits[split]:
            # The highest note of each step is the soprano, voice crossings aside.
            melody = (roll * np.arange(1, 89)).max(axis=1).astype(np.uint8).tobytes()
            for content in (roll.tobytes(), melody):
                assert seen.setdefault(content, split) == split


def test_the_tonic_is_c():
    """After transposing, every chorale uses the scale of C major or C minor for most of its notes."""
    scales = [{0, 2, 4, 5, 7, 9, 11}, {0, 2, 3, 5, 7, 8, 10, 11}]
    for roll in load("bach").splits["test"]:
        pitch_classes = (np.nonzero(roll)[1] + LOWEST_NOTE) % 12
        assert max(np.isin(pitch_classes, list(scale)).mean() for scale in scales) > 0.8
