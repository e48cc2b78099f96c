"""TIMIT: the released split of a tree with the right names, and what is said of a wrong one."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from fivo.data import check_timit, load
from fivo.data.speech import timit
from fivo.errors import InputError
from tests.data.sounds import nist, noise, riff, timit_tree, write
from tests.sentences import assert_one_sentence

NAMES = Path(__file__).parents[4] / "shared" / "data" / "speech"


def names(half: str) -> list[str]:
    path = NAMES / f"timit-{half}-names.txt"
    if not path.exists():
        pytest.skip("the names of TIMIT's files are not beside the checkout (../shared/data/speech)")
    return path.read_text().split()


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """All 6,300 names, a few samples each."""
    return timit_tree(tmp_path_factory.mktemp("disc") / "TIMIT", names("train"), names("test"))


@pytest.fixture
def missing(tree, tmp_path):
    """Takes folders and files of the tree away for one test."""
    taken = []

    def take(path: str) -> None:
        taken.append((tree / path, tmp_path / path.replace("/", "-")))
        shutil.move(*taken[-1])

    yield take
    for original, aside in taken:
        shutil.move(aside, original)


def test_the_released_order():
    order = timit.released_order(names("train")[::-1])
    assert order[:5] == [
        "DR1/FKFB0/SX438.WAV",
        "DR3/MILB0/SX3.WAV",
        "DR4/MJLS0/SA1.WAV",
        "DR7/MADD0/SX448.WAV",
        "DR3/MREH1/SX339.WAV",
    ]
    assert timit.digest_of(order[:231]) == timit.VALIDATION_DIGEST


def test_the_released_split(tree):
    """Everything is as released but the samples, and that is what is said."""
    outcome = check_timit(tree)
    counts = outcome.dataset.counts
    assert {split: sequences for split, (sequences, _) in counts.items()} == timit.COUNTS
    assert counts["valid"] == (231, 231)
    assert len(outcome.differences) == 2
    assert "548.136169 was expected" in outcome.differences[1]
    assert load(tree).fingerprint == load(tree.parent).fingerprint == outcome.dataset.fingerprint
    # The first of the validation list, by its content.
    at = names("train").index("DR1/FKFB0/SX438.WAV")
    samples = noise(3 + at % 5, at)
    frames = outcome.dataset.splits["valid"][0]
    np.testing.assert_array_equal(np.rint(outcome.dataset.sound.scaling.restore(frames[0, : len(samples)])), samples)
    assert (frames[0, len(samples) :] == 0).all()


def test_small_letters_give_the_same_split(tree, tmp_path):
    lower = timit_tree(
        tmp_path / "timit", (name.lower() for name in names("train")), (name.lower() for name in names("test"))
    )
    for half in ("TRAIN", "TEST"):
        (lower / half).rename(lower / half.lower())
    assert load("timit", data_dir=tmp_path).fingerprint == load(tree).fingerprint


def test_a_missing_speaker_is_counted(tree, missing):
    missing("TRAIN/DR1/FCJF0")
    outcome = check_timit(tree)
    assert outcome.dataset is None
    assert "TRAIN has 4,610 files of 461 speakers where 4,620 of 462 were expected" in outcome.differences
    assert "digest" in outcome.differences[1]
    with pytest.raises(InputError) as refused:
        load(tree)
    assert_one_sentence(refused.value, str(tree), "461 speakers")


def test_a_missing_file_is_traced_to_its_speaker(tree, missing):
    missing("TEST/DR2/FPAS0/SA1.WAV")
    assert check_timit(tree).differences == (
        "TEST has 1,679 files of 168 speakers where 1,680 of 168 were expected",
        "TEST/DR2/FPAS0 has 9 files where 10 were expected",
    )


def replaced(tree: Path, content: bytes) -> InputError:
    path = tree / "TRAIN" / "DR1" / "FCJF0" / "SA1.WAV"
    good = path.read_bytes()
    path.write_bytes(content)
    try:
        with pytest.raises(InputError) as refused:
            check_timit(tree)
    finally:
        path.write_bytes(good)
    return refused.value


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (nist(noise(50))[:-10], "cut short"),
        (nist(noise(50), sample_coding="-s26 pcm,embedded-shorten-v2.00"), "compressed with Shorten"),
        (nist(noise(50), channel_count="-i 2"), "2 channels"),
        (nist(noise(50), rate=8_000), "sox IN -r 16000 OUT"),
    ],
    ids=["truncated", "Shorten", "stereo", "another rate"],
)
def test_a_bad_file_is_named(tree, content, part):
    assert_one_sentence(replaced(tree, content), "FCJF0/SA1.WAV", part)


def test_other_forms_of_a_distribution(tmp_path):
    """RIFF under the same names, a RIFF copy beside every NIST file, other files, and silence."""
    speaker = tmp_path / "data" / "TRAIN" / "DR1" / "FCJF0"
    write(speaker / "SA1.WAV", nist(noise(5)))
    write(speaker / "SA1.WAV.wav", riff(noise(9)))
    write(speaker / "SX2.WAV.wav", riff(np.zeros(7, np.int16)))
    write(speaker / "SA1.PHN", b"0 5 h#\n")
    (tmp_path / "data" / "TEST" / "DR1").mkdir(parents=True)
    assert timit.is_timit(tmp_path)
    found = timit._utterances(tmp_path / "data" / "TRAIN")
    assert {name: path.name for name, path in found.items()} == {
        "DR1/FCJF0/SA1.WAV": "SA1.WAV",
        "DR1/FCJF0/SX2.WAV": "SX2.WAV.wav",
    }


def test_no_timit(tmp_path):
    with pytest.raises(InputError) as refused:
        check_timit(tmp_path)
    assert_one_sentence(refused.value, str(tmp_path), "TRAIN/DR1")
    with pytest.raises(InputError) as refused:
        load("timit", data_dir=tmp_path)
    assert_one_sentence(refused.value, "licensed", "--dataset")
