"""`fivo sample`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from fivo.data import Dataset


def sample(
    run: Path,
    *,
    out: Path,
    length: int = 128,
    prefix: str | None = None,
    prefix_length: int | None = None,
    seed: int = 0,
    tempo: int = 100,
    data_dir: Path | None = None,
) -> None:
    """New music from a run's best model, written as MIDI, WAV and a picture of the pianoroll.

    Parameters
    ----------
    run
        The run's directory.
    out
        The MIDI file; the .wav and .png stand beside it.
    length
        How many new time steps.
    prefix
        What to continue: SPLIT:INDEX of the run's data (test:3), or a MIDI file.
    prefix_length
        How many steps of the prefix to keep. [all]
    seed
        Of the sample.
    tempo
        Quarter notes per minute.
    data_dir
        Where datasets are looked up first.
    """
    import jax
    import numpy as np

    from fivo.cli.caching import compilation_cache
    from fivo.errors import InputError
    from fivo.evaluation import open_run
    from fivo.evaluation import sample as draw
    from fivo.report import write_midi, write_pianoroll, write_wav

    if out.suffix not in (".mid", ".midi"):
        raise InputError(f"got --out {str(out)!r} where a file ending in .mid was expected; name it piece.mid, say.")
    compilation_cache()
    trained = open_run(run, data_dir=data_dir)
    if trained.dataset.kind != "pianoroll":
        raise InputError(f"{str(run)!r} was trained on {trained.dataset.kind} data; use a run trained on music.")
    given = None if prefix is None else _prefix(prefix, prefix_length, trained.dataset)
    new = draw(trained.model, length, key=jax.random.key(seed), prefix=given)
    piece = np.asarray(new if given is None else np.concatenate([given, new]), np.uint8)
    steps = max(1, round(trained.dataset.steps_per_quarter or 1))
    write_midi(out, piece, steps_per_quarter=steps, tempo=tempo)
    write_wav(out.with_suffix(".wav"), piece, steps_per_quarter=steps, tempo=tempo)
    write_pianoroll(out.with_suffix(".png"), piece, prefix=0 if given is None else len(given))
    print(f"wrote {out}, {out.with_suffix('.wav')} and {out.with_suffix('.png')}: {len(piece)} steps")


def _prefix(prefix: str, length: int | None, dataset: "Dataset") -> "np.ndarray":
    from fivo.data import read_midi
    from fivo.errors import InputError

    split, _, index = prefix.partition(":")
    if split in dataset.splits and index.isdigit():
        pieces = dataset.splits[split]
        if int(index) >= len(pieces):
            raise InputError(f"got the prefix {prefix!r} where {split} has the pieces 0 to {len(pieces) - 1}.")
        roll = pieces[int(index)]
    elif Path(prefix).exists():
        roll = read_midi(Path(prefix), steps_per_quarter=dataset.steps_per_quarter or 1)
    else:
        raise InputError(f"got the prefix {prefix!r} where SPLIT:INDEX (say test:3) or a MIDI file was expected.")
    if length is not None and not 1 <= length <= len(roll):
        raise InputError(f"got a prefix length of {length} where 1 to {len(roll)} was expected.")
    return roll[:length]
