"""Music in the forms that users bring."""

import pickle

import numpy as np

from fivo.data import LOWEST_NOTE, SPLITS, Dataset

_SCALAR_TYPE = (
    b"cnumpy.core.multiarray\nscalar\nq\x01cnumpy\ndtype\nq\x02U\x02i8K\x00K\x01\x87Rq\x03"
    b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
)


def note_lists(dataset: Dataset) -> dict[str, list[list[tuple[int, ...]]]]:
    """Every step as the ascending numbers of its notes."""
    return {split: [[_notes(frame) for frame in roll] for roll in dataset.splits[split]] for split in SPLITS}


def _notes(frame: np.ndarray) -> tuple[int, ...]:
    return tuple(int(column) + LOWEST_NOTE for column in np.flatnonzero(frame))


def pickled(dataset: Dataset, protocol: int = 2) -> bytes:
    """A pickle of plain integers."""
    return pickle.dumps(note_lists(dataset), protocol)


def original_pickle(dataset: Dataset) -> bytes:
    """The form of the original files: Python 2, protocol 2, every note a memoised `numpy.int64`."""
    content = bytearray(b"\x80\x02}(")
    first = True
    memo = 4
    for split, sequences in note_lists(dataset).items():
        content += b"U" + bytes([len(split)]) + split.encode() + b"]("
        for sequence in sequences:
            content += b"]("
            for notes in sequence:
                content += b"("
                for note in notes:
                    content += _SCALAR_TYPE if first else b"h\x01h\x03"
                    first = False
                    content += b"U\x08" + note.to_bytes(8, "little") + b"\x86R"
                    content += b"r" + memo.to_bytes(4, "little")
                    memo += 1
                content += b"t"
            content += b"e"
        content += b"e"
    return bytes(content + b"u.")
