"""Builds `src/fivo/data/bach.npz`, the chorales that are shipped with the package.

    pip install music21==10.5.1 && python scripts/build_bach.py [OUTPUT]

Reads every score of the corpus of the `music21` package that is named by a BWV number and has exactly the voices
soprano, alto, tenor and bass (instruments are left out), samples what the four voices sound at each quarter note of the
written score (repeats are not played twice), and transposes it to C major or C minor. A silence of all voices, such as
an instrumental interlude, is shortened to one step, and cut off at both ends. Of chorales that are then identical one
is kept.

The split keeps together what belongs together: all movements of one BWV number, and all chorales whose soprano is the
same. These groups, in the order of their hash, go each to the split that is furthest below its share of the frames.

The same versions of music21 and zlib give the same file, byte for byte. Scores in Humdrum format are passed over: they
carry a notice that reserves rights (and double others).
"""

import hashlib
import itertools
import math
import re
import sys
from pathlib import Path

import music21
import numpy as np

from fivo.data import HIGHEST_NOTE, LOWEST_NOTE, SPLITS, Dataset, save_npz

MUSIC21_VERSION = "10.5.1"
OUTPUT = Path(__file__).parents[1] / "src" / "fivo" / "data" / "bach.npz"
VOICES = ("Soprano", "Alto", "Tenor", "Bass")
SHARES = {"train": 0.70, "valid": 0.15, "test": 0.15}


class Chorale:
    """One score: `roll` is uint8 `[quarters, 88]`, `melody` what its soprano sings."""

    def __init__(self, path: Path, voices: list[music21.stream.Part]) -> None:
        self.name = path.stem
        self.work = int(re.match(r"bwv(\d+)", path.stem).group(1))
        tonic = music21.stream.Score(voices).analyze("key").tonic.pitchClass
        shift = (5 - tonic) % 12 - 5
        # An upbeat of a fraction of a quarter would put every bar line between two steps.
        start = voices[0].getElementsByClass("Measure").first().duration.quarterLength % 1
        length = math.ceil(max(voice.highestTime for voice in voices) - start)
        rolls = [sample(voice, start, shift, length) for voice in voices]
        roll = np.bitwise_or.reduce(rolls)
        sounding = roll.any(axis=1)
        kept = sounding | np.concatenate([[False], sounding[:-1]])
        kept[np.flatnonzero(sounding)[-1] + 1 :] = False
        self.roll = roll[kept]
        self.melody = rolls[0][kept]


def sample(voice: music21.stream.Part, start: float, shift: int, length: int) -> np.ndarray:
    """What a voice sounds at each quarter."""
    roll = np.zeros((length, HIGHEST_NOTE - LOWEST_NOTE + 1), dtype=np.uint8)
    for element in voice.flatten().notes:
        first = math.ceil(element.offset - start)
        after = math.ceil(element.offset + element.quarterLength - start)
        for pitch in element.pitches:
            roll[max(first, 0) : max(after, 0), pitch.midi + shift - LOWEST_NOTE] = 1
    return roll


def read_chorales() -> list[Chorale]:
    """All four-part chorales, by BWV number, each content once."""
    folder = Path(music21.__file__).parent / "corpus" / "bach"
    chorales: dict[bytes, Chorale] = {}
    for path in sorted(
        folder.glob("bwv*"),
        key=lambda path: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)],
    ):
        if path.suffix not in (".mxl", ".xml"):
            continue
        parts = music21.converter.parse(path, forceSource=True).parts
        voices = [[part for part in parts if re.match(rf"{voice}\b(?! \d)", part.partName or "")] for voice in VOICES]
        if all(len(found) == 1 for found in voices):
            chorale = Chorale(path, [found[0] for found in voices])
            chorales.setdefault(chorale.roll.tobytes(), chorale)
    return list(chorales.values())


def grouped(chorales: list[Chorale]) -> list[list[Chorale]]:
    """Chorales linked by their BWV number or their melody, however indirectly."""
    groups: list[tuple[set, list[Chorale]]] = []
    for chorale in chorales:
        links = {chorale.work, chorale.melody.tobytes()}
        touching = [group for group in groups if group[0] & links]
        groups = [group for group in groups if not group[0] & links]
        groups.append(
            (
                links.union(*(group[0] for group in touching)),
                [*itertools.chain(*(group[1] for group in touching)), chorale],
            )
        )
    return [members for _, members in groups]


def split(chorales: list[Chorale]) -> dict[str, list[Chorale]]:
    """The groups, dealt out to the splits."""
    total = sum(len(chorale.roll) for chorale in chorales)
    missing = {name: share * total for name, share in SHARES.items()}
    chosen: dict[str, set[str]] = {name: set() for name in SPLITS}
    for group in sorted(
        grouped(chorales), key=lambda group: hashlib.sha256(min(c.name for c in group).encode()).digest()
    ):
        target = max(missing, key=missing.__getitem__)
        missing[target] -= sum(len(chorale.roll) for chorale in group)
        chosen[target].update(chorale.name for chorale in group)
    return {name: [chorale for chorale in chorales if chorale.name in chosen[name]] for name in SPLITS}


def main() -> None:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    if music21.__version__ != MUSIC21_VERSION:
        sys.exit(
            f"music21 {music21.__version__} is installed, but {MUSIC21_VERSION} made the committed file; install it."
        )
    splits = split(read_chorales())
    dataset = Dataset.pianoroll(
        "bach", {name: [chorale.roll for chorale in chorales] for name, chorales in splits.items()}, 1
    )
    save_npz(dataset, output)
    for name, chorales in splits.items():
        print(f"{name}: {' '.join(chorale.name.removeprefix('bwv') for chorale in chorales)}")
    print(f"counts {dataset.counts}\nfingerprint {dataset.fingerprint}\n{output.stat().st_size} bytes in {output}")


if __name__ == "__main__":
    main()
