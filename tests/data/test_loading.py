"""Finding datasets, and refusing files that are not what their name says."""

import dataclasses
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from fivo.data import check, list_datasets, load, search_path
from fivo.data.registry import KNOWN
from fivo.errors import InputError
from tests.data.files import original_pickle
from tests.sentences import assert_one_sentence

NAMES = ("jsb", "nottingham", "musedata", "piano-midi")
# Nats per step of a Bernoulli at the train mean on the test split, as published with the paper's facts.
FLOORS = {"jsb": -11.06, "nottingham": -10.25, "musedata": -11.51, "piano-midi": -11.05}


@pytest.mark.parametrize("name", NAMES)
def test_original_files_have_the_known_content(name, pianoroll_files):
    dataset = load(name, data_dir=pianoroll_files)
    assert dataset.counts == KNOWN[name].counts
    assert dataset.sound.steps_per_quarter == (1 if name == "jsb" else 2)
    mean = np.clip(dataset.train_mean, 1e-4, 1 - 1e-4)
    test = np.concatenate(dataset.splits["test"])
    floor = (test @ np.log(mean) + (1.0 - test) @ np.log1p(-mean)).mean()
    assert floor == pytest.approx(FLOORS[name], abs=0.01)


def test_the_original_pickle_holds_the_same_as_the_matlab_file(pianoroll_files, tmp_path: Path):
    name, file_name = "jsb", "JSB Chorales.pickle.xz"
    (tmp_path / file_name).symlink_to(pianoroll_files / file_name)
    checked = check(name, data_dir=tmp_path)[0]
    assert checked.problem is None
    assert checked.path == tmp_path / file_name
    assert checked.fingerprint == load(name, data_dir=pianoroll_files).fingerprint


@pytest.mark.parametrize(
    ("file_name", "compress"),
    [
        ("Tiny Music.pickle", bytes),
        ("Tiny Music.pickle.xz", lzma.compress),
        ("Tiny Music.pickle.gz", gzip.compress),
        ("tiny_music.pickle", bytes),
        ("polyphonic/tiny_music.pickle", bytes),
        ("pianoroll/Tiny Music.pickle.xz", lzma.compress),
    ],
)
def test_a_name_is_found_under_its_file_names(file_name, compress, tiny, known_tiny, tmp_path: Path):
    path = tmp_path / file_name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(compress(original_pickle(tiny)))
    assert load("tiny", data_dir=tmp_path).fingerprint == tiny.fingerprint
    assert {listed.name: listed.path for listed in list_datasets(tmp_path)}["tiny"] == path


def test_the_places_are_searched_in_order(tiny, known_tiny, tmp_path: Path, monkeypatch):
    places = [tmp_path / "given", tmp_path / "environment", tmp_path / "cache" / "fivo"]
    monkeypatch.setenv("FIVO_DATA", str(places[1]))
    assert search_path(places[0]) == places
    with pytest.raises(
        InputError, match=r"'tiny' is not in .*given, .*environment, .*fivo; run `fivo data fetch tiny`"
    ):
        load("tiny", data_dir=places[0])
    for place in reversed(places):
        place.mkdir(parents=True)
        (place / "tiny_music.pickle").write_bytes(original_pickle(tiny))
        assert check("tiny", data_dir=places[0])[0].path == place / "tiny_music.pickle"
        assert check("tiny", data_dir=places[0])[0].ok


def test_a_known_file_with_a_changed_byte_is_refused_before_it_is_read(tiny, known_tiny, tmp_path: Path):
    content = bytearray(original_pickle(tiny))
    content[-1] ^= 1
    (tmp_path / "tiny_music.pickle").write_bytes(content)
    sentence = rf"tiny_music\.pickle is not the known file of 'tiny': SHA-256 .*expected {known_tiny.pickle_sha256}"
    with pytest.raises(InputError, match=sentence):
        load("tiny", data_dir=tmp_path)
    assert not check(data_dir=tmp_path)[-1].ok


def test_counts_that_differ_are_one_sentence(tiny, known_tiny, tmp_path: Path, monkeypatch):
    monkeypatch.setitem(KNOWN, "tiny", dataclasses.replace(known_tiny, counts={**tiny.counts, "valid": (2, 4)}))
    (tmp_path / "tiny_music.pickle").write_bytes(original_pickle(tiny))
    with pytest.raises(InputError, match="the valid split must have 2 sequences of 4 frames in all, got 1 of 4"):
        load("tiny", data_dir=tmp_path)


def test_check_without_names_reads_what_is_there(tiny, known_tiny, tmp_path: Path):
    assert [checked.name for checked in check(data_dir=tmp_path)] == ["bach"]
    (tmp_path / "tiny_music.pickle").write_bytes(original_pickle(tiny))
    assert [(checked.name, checked.ok, checked.counts) for checked in check(data_dir=tmp_path)][1:] == [
        ("tiny", True, tiny.counts)
    ]


def test_check_reports_instead_of_raising(tmp_path: Path):
    missing, unknown = check("jsb", "jbs", data_dir=tmp_path)
    assert missing.path is None
    assert "fivo data fetch jsb" in missing.problem
    assert "did you mean jsb?" in unknown.problem


def test_an_unknown_name_is_one_sentence():
    with pytest.raises(InputError, match="'bahc' is neither a known dataset nor an existing path; did you mean bach"):
        load("bahc")
    with pytest.raises(InputError, match="the known ones are bach, jsb, nottingham, musedata, piano-midi"):
        load("zzz")
    with pytest.raises(InputError, match="cannot be read"):
        load(Path("zzz.pickle"))


@pytest.mark.parametrize("name", ["", "a" * 5000, "a\0b", "~nobody-of-this-name/x", "~a\0b", "~\ud800"])
def test_a_name_no_file_can_have_is_one_sentence(name):
    with pytest.raises(InputError, match="neither a known dataset nor an existing path"):
        load(name)


def test_a_known_step_cannot_be_changed():
    with pytest.raises(InputError, match="bach has 1 steps to the quarter, but 2 were asked for"):
        load("bach", steps_per_quarter=2)


@pytest.mark.parametrize("compress", [lzma.compress, gzip.compress])
def test_a_small_file_does_not_fill_the_memory(compress, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("fivo.data.budget.MEMORY", 64 << 20)
    path = tmp_path / "music.pickle"
    path.write_bytes(compress(bytes(30 << 20)))
    with pytest.raises(InputError, match=r"decompresses to more than 25,1.* bytes; refused as a decompression bomb"):
        load(path)


@pytest.mark.parametrize("compress", [lzma.compress, gzip.compress])
def test_a_truncated_or_damaged_file_is_one_sentence(compress, tiny, tmp_path: Path):
    path = tmp_path / "music.pickle.xz"
    content = compress(original_pickle(tiny))
    for damaged in (content[:-9], content[: len(content) // 2], content + b"more", content[:40] + b"?" + content[41:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="get a fresh copy"):
            load(path)


def test_an_enormous_dictionary_is_refused(tiny, tmp_path: Path):
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    path = tmp_path / "music.pickle.xz"
    path.write_bytes(lzma.compress(original_pickle(tiny), filters=filters))
    with pytest.raises(InputError, match="too much memory"):
        load(path)


@pytest.mark.parametrize(
    "name",
    ["a.txt", "a.json", "a.npy", "piece.mid", "a.wav", "a", "a.unknown"],
)
def test_a_file_of_another_kind_is_said_to_be_one(name, tmp_path: Path):
    (tmp_path / name).write_bytes(b"time,rate\n0,1.5\n")
    with pytest.raises(InputError) as refused:
        load(tmp_path / name)
    assert_one_sentence(refused.value, f"{name} is a kind of file that is not supported as a dataset yet", "an .npz")
    assert "not a pickle" not in str(refused.value)


@pytest.mark.parametrize("name", ["a.csv", "A.CSV", "a.csv.gz", "a.parquet", "a.arrow"])
def test_a_table_needs_to_be_told_its_columns(name, tmp_path: Path):
    (tmp_path / name).write_bytes(b"time,rate\n0,1.5\n")
    with pytest.raises(InputError) as refused:
        load(tmp_path / name)
    assert_one_sentence(refused.value, f"{name} is a table", "`Dataset.from_table`")


def test_a_large_table_is_not_read_to_say_so(tmp_path: Path):
    with open(tmp_path / "a.csv", "wb") as file:
        file.truncate(30 << 30)
    with pytest.raises(InputError, match="is a table"):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["music.pickle", "music.pkl", "music.pickle.xz", "music.npz", "music.mat"])
def test_a_file_that_is_not_what_its_name_says_is_called_by_its_name(name, tmp_path: Path):
    (tmp_path / name).write_bytes(b"time,rate")
    with pytest.raises(InputError) as refused:
        load(tmp_path / name)
    assert_one_sentence(refused.value, name)
    assert "not supported as a dataset yet" not in str(refused.value)


def test_a_seed_must_not_be_negative():
    with pytest.raises(InputError) as refused:
        load("bach", split_seed=-1)
    assert_one_sentence(refused.value, "`split_seed` must be a whole number from 0, got -1")


@pytest.mark.parametrize("steps", [0, -1, float("nan"), float("inf"), 5e-324, 10**400])
def test_a_step_must_be_positive(steps, tiny, tmp_path: Path):
    path = tmp_path / "music.pickle"
    path.write_bytes(original_pickle(tiny))
    for dataset in (path, "bach"):
        with pytest.raises(InputError) as refused:
            load(dataset, steps_per_quarter=steps)
        assert_one_sentence(refused.value, "`steps_per_quarter` must be positive and finite")
