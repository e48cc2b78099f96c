"""How much is read: no file, however small, may fill the memory or keep a core busy for minutes.

What counts is what data becomes, not what is read: a megabyte of zip may hold gigabytes of zeros, and every byte of a
pickle may make an object. A reader asks the budget of its dataset before it allocates anything that a file decides.
"""

from pathlib import Path

from fivo.errors import InputError

MEMORY = 1 << 30
"""Bytes that reading one dataset may take at its peak: its files, every intermediate form and the frames together."""
SEQUENCES = 500_000
"""Sequences in a dataset, and files in a folder."""
SEQUENCE_BYTES = 320
"""What a sequence takes besides its numbers: an array, and its places in lists."""

INSTRUCTION_BYTES = 160
"""The most that an instruction of a pickle adds to the memory, besides its own bytes: a memo that grows costs this."""
STRING_BYTES = 255
"""A string in a pickle of note lists: the names of splits and types, and the bytes of an integer."""
NOTES_READ = 20_000_000
"""Notes in a pickle, counting those of a list that it holds many times."""
MIDI_BYTES = 1 << 20
"""A MIDI file; this much is parsed in about three seconds."""
MIDI_PARSED_BYTES = 320
"""What a byte of a MIDI file may become while it is parsed."""
MIDI_NUMBER_BYTES = 4_096
"""A number in a MIDI file: four bytes by the standard, but text may look like a longer one."""
ZIP_MEMBERS = 100
NPY_HEADER_BYTES = 10_000
WAV_CHUNKS = 1_000
NIST_HEADER_BYTES = 1 << 16
ENTRY_BYTES = 32
"""What a number of plain arrays takes besides the file's bytes: checked, scaled in double precision, and stored."""
COLUMN_BYTES = 1_000
"""What a column takes besides its numbers: a name, a kind, a scale."""
CELL_BYTES = 24
"""What a cell of a table takes besides the bytes of its text: a place in a column, and whether it is there."""
STEP_BYTES = 64
"""What a step of a series takes besides its numbers: its row, its time, and its place while rows are sorted."""
SAMPLE_BYTES = 9
"""What a sample of a recording takes besides the file's bytes: decoded, checked, and in its frame."""
FACTS_BYTES = 1 << 26
"""The JSON stored with cached frames."""


class Budget:
    """The memory that is left for reading one dataset.

    What was spent is never given back, so the peak stays below `MEMORY` whatever is alive at the same time.

    Args:
        where: The path that messages name.
    """

    def __init__(self, where: str | Path) -> None:
        self.where = str(where)
        self.room = MEMORY

    def spend(self, count: int) -> None:
        """Take `count` bytes, or refuse the dataset."""
        self.afford(count)
        self.room -= count

    def afford(self, count: int) -> None:
        """Refuse the dataset if there is no room for `count` temporary bytes."""
        if count > self.room:
            raise InputError(f"{self.where} becomes more than {MEMORY / 2**30:g} GiB in memory; split it up.")

    def spend_sequences(self, count: int) -> None:
        """Take what `count` sequences need besides their frames."""
        if count > SEQUENCES:
            raise InputError(
                f"{self.where} holds {count:,} sequences, more than the {SEQUENCES:,} that are read; split it up."
            )
        self.spend(count * SEQUENCE_BYTES)
