"""The music sets known by name: what their files are called, what they must contain, where they come from.

The four sets of Boulanger-Lewandowski, Bengio & Vincent (ICML 2012) that the paper trains on, and `bach`, which is
shipped with the package.
"""

import dataclasses
import difflib

from fivo.data.dataset import Dataset
from fivo.data.splits import SPLITS
from fivo.errors import InputError

_SOURCE = "https://raw.githubusercontent.com/pyro-ppl/datasets/a32915c210878a1d4a36adcdc7d3448f89d5e4ee/polyphonic"


@dataclasses.dataclass(frozen=True)
class KnownDataset:
    """A set whose content is known to the byte. `counts` are (sequences, frames) of each split."""

    name: str
    title: str
    steps_per_quarter: float | int
    counts: dict[str, tuple[int, int]]
    fingerprint: str
    pickle_names: tuple[str, ...] = ()
    pickle_sha256: str = ""
    pickle_bytes: int = 0
    matlab_name: str = ""
    matlab_sha256: str = ""

    @property
    def embedded(self) -> bool:
        """Whether the package itself contains the set."""
        return not self.pickle_names

    @property
    def source(self) -> str:
        """The address `fetch` uses by default."""
        return f"{_SOURCE}/{self.pickle_names[-1]}"

    def verify(self, dataset: Dataset) -> Dataset:
        """`dataset` itself, if it has the known counts and content."""
        for split in SPLITS:
            if dataset.counts[split] != self.counts[split]:
                (sequences, frames), (expected, expected_frames) = dataset.counts[split], self.counts[split]
                raise InputError(
                    f"{self.name}: the {split} split must have {expected} sequences of {expected_frames} frames in "
                    f"all, got {sequences} of {frames}; get a fresh copy."
                )
        if dataset.fingerprint != self.fingerprint:
            raise InputError(
                f"{self.name}: the content must have the fingerprint {self.fingerprint[:16]}, "
                f"got {dataset.fingerprint[:16]}; get a fresh copy."
            )
        return dataset


def _counts(*pairs: tuple[int, int]) -> dict[str, tuple[int, int]]:
    return dict(zip(SPLITS, pairs, strict=True))


KNOWN = {
    known.name: known
    for known in (
        KnownDataset(
            name="bach",
            title="Four-part chorales of J. S. Bach, shipped with the package",
            steps_per_quarter=1,
            counts=_counts((284, 15670), (57, 3345), (62, 3374)),
            fingerprint="c6dbf895bb8f81278b8a4daa1f421f736291bc421cd9aa5699284700e176b65e",
        ),
        KnownDataset(
            name="jsb",
            title="JSB chorales",
            steps_per_quarter=1,
            counts=_counts((229, 13807), (76, 4602), (77, 4725)),
            fingerprint="d11a920186bf54f4153a2b020bec9f90f6647240502a9d2d6ab93109ba8c3832",
            pickle_names=("JSB Chorales.pickle", "jsb_chorales.pickle"),
            pickle_sha256="69dc4c3e52800959ac0ab3b82aa3e5f55285ce64f1705acb3e3a8ef77a5c051c",
            pickle_bytes=2051809,
            matlab_name="JSB_Chorales.mat",
            matlab_sha256="ac0e608527cc411c7e21ef7d38be47f0de7fb6b13b3ae168b8eccf1c2a9b18d4",
        ),
        KnownDataset(
            name="nottingham",
            title="Nottingham folk tunes",
            steps_per_quarter=2,
            counts=_counts((694, 176561), (173, 45513), (170, 44463)),
            fingerprint="eebd06609821e9b5db6c4f5a385fd59b977ee7584db5070a72167510c6b9deff",
            pickle_names=("Nottingham.pickle", "nottingham.pickle"),
            pickle_sha256="c00cd14b74137a28bf0b5703b47833523069e68073ecc1bd3c3e8bf4efb1c67f",
            pickle_bytes=24328483,
            matlab_name="Nottingham.mat",
            matlab_sha256="d154f7ca2e90799dc1dc011d8fc048f2fc6ef3f7c69d974b9cf27a471634fbea",
        ),
        KnownDataset(
            name="musedata",
            title="MuseData orchestral and piano music",
            steps_per_quarter=2,
            counts=_counts((524, 245202), (135, 82755), (124, 64339)),
            fingerprint="e0fb95868cbbd36aac0af8c58261c098b803ca7a5367bb087b3e3c30d3185366",
            pickle_names=("MuseData.pickle", "muse_data.pickle"),
            pickle_sha256="b109ebdb74b57c6cc245b31af0e19ac52c7ff1673ffb2ae5d1225dba60d6d3ec",
            pickle_bytes=31533329,
            matlab_name="MuseData.mat",
            matlab_sha256="e8d9eb422ec3833c25f43a9f854d4ee0b9118a20b45f2c183395cdc30ffa14ff",
        ),
        KnownDataset(
            name="piano-midi",
            title="Piano-midi.de classical piano music",
            steps_per_quarter=2,
            counts=_counts((87, 75911), (12, 8540), (25, 19036)),
            fingerprint="c6b0d8442e4fd7a49fae0dd1654cd94621846e65de36e54f6e892979734283fc",
            pickle_names=("Piano-midi.de.pickle", "piano_midi.pickle"),
            pickle_sha256="273d593b13d9a348410d261c0223d47523e2a9b41702137aaab5922242518296",
            pickle_bytes=7413484,
            matlab_name="Piano_midi.mat",
            matlab_sha256="990a8a71d5764a7eaa3e78d9e5023d1470380fe2db3a1448265a97a24c8b1c34",
        ),
    )
}
"""The datasets known by name, each with its files, checksums and counts."""


def known(name: str) -> KnownDataset:
    """The registered set of that name."""
    if name not in KNOWN:
        near = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the known ones are {', '.join(KNOWN)}."
        raise InputError(f"{name!r:.80} is neither a known dataset nor an existing path; {hint}")
    return KNOWN[name]
