"""TIMIT as the paper uses it: the released split, and what is known of its content.

TIMIT is licensed and not shipped. Its tree is `{TRAIN,TEST}/DR1..8/<speaker>/<SA|SI|SX>n.WAV`, in capitals or not.
"""

import hashlib
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fivo.data.dataset import Dataset
from fivo.data.places import expanded, search_path
from fivo.data.sound import Scaling, Speech
from fivo.data.speech.cache import Cutting, cached_dataset
from fivo.data.speech.recording import PAPER_RATE
from fivo.errors import InputError

NAME = "timit"
"""The name by which TIMIT is loaded and checked."""
COUNTS = {"train": 4_389, "valid": 231, "test": 1_680}
SPEAKERS = {"TRAIN": 462, "TEST": 168}
PER_SPEAKER = 10
VALIDATION_DIGEST = "5e4303544bff4eb91e8aed785a0126060ff940c88470f9962cc5465ade2ab4fa"
"""SHA-256 of the released validation list: names `DRx/SPEAKER/UTTERANCE.WAV` in their order, a line each."""
MEAN, DEVIATION = 0.006060, 548.136169
MEAN_TOLERANCE, DEVIATION_TOLERANCE = 1e-3, 1e-2
"""Published in single precision; sums of 200 million samples differ in these digits."""
FRAME = 200
SHUFFLE_SEED = 1234

# Some distributions add a RIFF copy of every file under the name SA1.WAV.wav.
_UTTERANCE = re.compile(r"((?:SA|SI|SX)\d+)\.WAV(\.WAV)?")
_REGION = re.compile(r"DR[1-8]")
_PLACES = ("", "TIMIT", "timit", "speech/TIMIT", "speech/timit")


@dataclass(frozen=True)
class TimitCheck:
    """What a copy of TIMIT is.

    Args:
        folder: Where it is.
        dataset: The data, if it could be read.
        differences: A clause for everything that is not as it should be.
    """

    folder: Path
    dataset: Dataset | None
    differences: tuple[str, ...]


def locate_timit(data_dir: str | Path | None = None) -> Path | None:
    """The first tree of TIMIT on the search path."""
    places = (place / folder for place in search_path(data_dir) for folder in _PLACES)
    return next((place for place in places if os.path.isdir(place) and is_timit(place)), None)


def find_timit(data_dir: str | Path | None = None) -> Path:
    """Where TIMIT is, or the sentence that says how to name it."""
    place = locate_timit(data_dir)
    if place is None:
        places = ", ".join(map(str, search_path(data_dir)))
        raise InputError(
            f"TIMIT is not in {places}; it is licensed and cannot be fetched, so name the folder that holds your copy, "
            "as in --dataset /data/TIMIT (--data-dir /data for a sweep, --from /data/TIMIT for a check)."
        )
    return place


def is_timit(folder: Path) -> bool:
    """Whether a folder has TIMIT's layout, perhaps one or two levels down."""
    return _halves(folder) is not None


def load_timit(folder: Path, *, frame: int = FRAME) -> Dataset:
    """The released split of a complete tree; anything else is refused."""
    files, differences = _split(folder)
    if differences:
        raise InputError(
            f"{folder} is not the TIMIT of the paper: {'; '.join(differences)}; restore the missing files."
        )
    return cached_dataset(NAME, files, Cutting(frame, PAPER_RATE, resample=False))


def check_timit(folder: str | Path | None = None, *, data_dir: str | Path | None = None) -> TimitCheck:
    """Read a copy of TIMIT completely and compare it with what is known.

    Args:
        folder: The copy; by default the one on the search path.
        data_dir: Where to look first.

    Returns:
        What it is, and how it differs.
    """
    place = find_timit(data_dir) if folder is None else expanded(folder)
    if not is_timit(place):
        raise InputError(
            f"{place} has not TIMIT's layout TRAIN/DR1/SPEAKER/SA1.WAV; give the folder that holds TRAIN and TEST."
        )
    files, differences = _split(place)
    if differences:
        return TimitCheck(place, None, tuple(differences))
    dataset = cached_dataset(NAME, files, Cutting(FRAME, PAPER_RATE, resample=False))
    return TimitCheck(
        place, dataset, tuple(_unexpected(dataset.sound.scaling if isinstance(dataset.sound, Speech) else None))
    )


def released_order(names: list[str]) -> list[str]:
    """Sorted names as `random.seed(1234); random.shuffle(names)` of Python 2 leaves them.

    Python 3 seeds the same generator alike, but its `shuffle` draws other numbers.
    """
    order, generator = sorted(names), Random(SHUFFLE_SEED)
    for last in range(len(order) - 1, 0, -1):
        other = int(generator.random() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


def digest_of(names: list[str]) -> str:
    """SHA-256 of names, a line each, without an end of the last line."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _split(folder: Path) -> tuple[dict[str, list[Path]], list[str]]:
    halves = _halves(folder)
    if halves is None:
        return {}, ["there are no folders TRAIN and TEST with DR1 to DR8 in them"]
    train, test = (_utterances(halves[half]) for half in SPEAKERS)
    differences = [
        clause for half, names in zip(SPEAKERS, (train, test), strict=True) for clause in _missing(half, names)
    ]
    order = released_order(list(train))
    valid, rest = order[: COUNTS["valid"]], order[COUNTS["valid"] :]
    if digest_of(valid) != VALIDATION_DIGEST:
        differences.append(
            f"the validation list has the digest {digest_of(valid)[:16]} where {VALIDATION_DIGEST[:16]} was expected"
        )
    files = {"train": [train[name] for name in rest], "valid": [train[name] for name in valid]}
    return files | {"test": [test[name] for name in sorted(test)]}, differences


def _missing(half: str, utterances: dict[str, Path]) -> list[str]:
    """What a half has too little or too much of."""
    speakers = Counter(name.rpartition("/")[0] for name in utterances)
    expected = SPEAKERS[half]
    clauses = []
    if len(speakers) != expected or len(utterances) != PER_SPEAKER * expected:
        clauses.append(
            f"{half} has {len(utterances):,} files of {len(speakers)} speakers where {PER_SPEAKER * expected:,} of "
            f"{expected} were expected"
        )
    odd = sorted(speaker for speaker, count in speakers.items() if count != PER_SPEAKER)
    if odd:
        others = f", as have {len(odd) - 1} other speakers a wrong number," if len(odd) > 1 else ""
        clauses.append(f"{half}/{odd[0]} has {speakers[odd[0]]} files{others} where {PER_SPEAKER} were expected")
    return clauses


def _unexpected(scaling: Scaling | None) -> list[str]:
    clauses = []
    if scaling is None:
        return clauses
    if not abs(scaling.mean - MEAN) <= MEAN_TOLERANCE:
        clauses.append(f"the training mean is {scaling.mean:.6f} where {MEAN:.6f} was expected")
    if not abs(scaling.deviation - DEVIATION) <= DEVIATION_TOLERANCE:
        clauses.append(f"the standard deviation is {scaling.deviation:.6f} where {DEVIATION:.6f} was expected")
    return clauses


def _halves(folder: Path) -> dict[str, Path] | None:
    """The folders TRAIN and TEST, directly below or one or two levels down, as the discs and their copies have them."""
    level = [folder]
    for _ in range(3):
        for place in level:
            halves = {entry.name.upper(): entry for entry in _folders(place) if entry.name.upper() in SPEAKERS}
            if len(halves) == len(SPEAKERS) and all(map(_has_regions, halves.values())):
                return halves
        level = [entry for place in level for entry in _folders(place)]
        if len(level) > 64:  # not what a disc looks like: do not search a home folder
            return None
    return None


def _has_regions(half: Path) -> bool:
    return any(_REGION.fullmatch(entry.name.upper()) for entry in _folders(half))


def _folders(place: Path) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir())
    except OSError:
        return []


def _names(place: Path) -> list[str]:
    try:
        return os.listdir(place)
    except OSError as error:
        raise InputError(f"{place} cannot be read ({error.strerror}); check its permissions.") from error


def _utterances(half: Path) -> dict[str, Path]:
    """Path by name `DRx/SPEAKER/UTTERANCE.WAV`."""
    found: dict[str, Path] = {}
    for region in _folders(half):
        for speaker in _folders(region) if _REGION.fullmatch(region.name.upper()) else ():
            for file_name in sorted(_names(speaker), key=len, reverse=True):  # the shorter name wins
                match = _UTTERANCE.fullmatch(file_name.upper())
                if match is not None:
                    found[f"{region.name}/{speaker.name}/{match[1]}.WAV".upper()] = speaker / file_name
    return found
