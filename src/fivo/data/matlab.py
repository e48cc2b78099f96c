"""The .mat files of the known music sets, by scipy.

scipy's reader is compiled code that allocates whatever a file claims to hold. It is given only content that is known to
the byte; every other .mat file is refused before anything of it is interpreted.
"""

import hashlib
import io

from fivo.data.budget import Budget
from fivo.data.dataset import Dataset
from fivo.data.registry import KNOWN
from fivo.data.sound import NOTES
from fivo.errors import InputError

_VARIABLES = {"train": "traindata", "valid": "validdata", "test": "testdata"}
_ENTRY_BYTES = 3
"""What an entry of a frame takes: as it is inflated, in its column-major matrix, and in the order of time."""


def is_matlab(content: bytes) -> bool:
    """Whether a file starts like a MATLAB file, of any version."""
    return content.startswith(b"MATLAB ")


def from_matlab(content: bytes, name: str, steps_per_quarter: float | int, budget: Budget) -> Dataset:
    """Reads the .mat file of a known set: cell arrays of matrices `[T, 88]`, one for each split."""
    digest = hashlib.sha256(content).hexdigest()
    known = next((entry for entry in KNOWN.values() if entry.matlab_sha256 == digest), None)
    if known is None:
        sets = ", ".join(entry.name for entry in KNOWN.values() if entry.matlab_sha256)
        raise InputError(
            f"{budget.where} is none of the .mat files that are read, those of {sets}; convert one of your own to "
            ".npz, with `scipy.io.loadmat` and `fivo.data.save_npz`."
        )
    for sequences, frames in known.counts.values():
        budget.spend_sequences(sequences)
        budget.spend(frames * NOTES * _ENTRY_BYTES)
    import scipy.io  # takes longer to import than most sets to read

    cells = scipy.io.loadmat(io.BytesIO(content), variable_names=tuple(_VARIABLES.values()))
    splits = {split: list(cells[variable].ravel()) for split, variable in _VARIABLES.items()}
    return Dataset.pianoroll(name, splits, steps_per_quarter)
