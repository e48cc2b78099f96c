"""`fivo sample`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from fivo.data import Dataset, Music, Speech

SUFFIXES = {"pianoroll": (".mid", ".midi"), "waveform": (".wav",)}


def sample(
    run: Path,
    *,
    out: Path,
    length: int = 128,
    prefix: str | None = None,
    prefix_length: int | None = None,
    seed: int = 0,
    tempo: int = 100,
    model: str | None = None,
    data_dir: Path | None = None,
) -> None:
    """Sample new music or speech from a run's best model.

    Music is written as MIDI, WAV and a picture of the pianoroll; speech as WAV at the rate and level of the recordings.

    Parameters
    ----------
    run
        The run's directory.
    out
        The MIDI file to write (a .wav and a .png are put next to it), or the WAV file for a run trained on recordings.
    length
        Number of new time steps or frames.
    prefix
        What to continue: SPLIT:INDEX in the run's data (such as test:3), a MIDI file, or a recording.
    prefix_length
        Number of steps or frames of the prefix to keep. [all]
    seed
        Random seed.
    tempo
        Quarter notes per minute, for music.
    model
        For a run of a model of your own: package.module:function, as in training.
    data_dir
        Where to look for datasets first.
    """
    import numpy as np

    from fivo._run import imported, open_run
    from fivo.caching import compilation_cache
    from fivo.data import Music
    from fivo.errors import InputError
    from fivo.extras import require

    if out.suffix not in sum(SUFFIXES.values(), ()):
        raise InputError(
            f"--out must end in .mid (music) or .wav (speech), got {str(out)!r}; use piece.mid, for example."
        )
    compilation_cache()
    trained = open_run(run, model=None if model is None else imported(model), data_dir=data_dir)
    kind = trained.dataset.kind
    if kind not in SUFFIXES:
        raise InputError(f"{str(run)!r} was trained on {kind}, but only music and speech can be sampled to a file.")
    if out.suffix not in SUFFIXES[kind]:
        raise InputError(
            f"--out must end in {SUFFIXES[kind][0]}, as {str(run)!r} was trained on {kind} data, got {str(out)!r}."
        )
    if kind == "pianoroll":
        for package in ("matplotlib", "mido"):  # before anything is sampled
            require(package, "Sampling music")
    given = None if prefix is None else _prefix(prefix, prefix_length, trained.dataset)
    new = trained.sample(length, seed=seed, prefix=given)
    frames = new if given is None else np.concatenate([given, new])
    sound = trained.dataset.sound
    if isinstance(sound, Music):
        _write_music(out, np.asarray(frames, np.uint8), sound, tempo, 0 if given is None else len(given))
    elif sound is not None:
        _write_speech(out, frames, sound)


def _write_music(out: Path, piece: "np.ndarray", sound: "Music", tempo: int, prefix: int) -> None:
    from fivo._terminal.output import say
    from fivo.report import write_midi, write_pianoroll, write_wav

    steps = max(1, round(sound.steps_per_quarter))
    write_midi(out, piece, steps_per_quarter=steps, tempo=tempo)
    write_wav(out.with_suffix(".wav"), piece, steps_per_quarter=steps, tempo=tempo)
    write_pianoroll(out.with_suffix(".png"), piece, prefix=prefix)
    say(f"wrote {out}, {out.with_suffix('.wav')} and {out.with_suffix('.png')}: {len(piece)} steps")


def _write_speech(out: Path, frames: "np.ndarray", sound: "Speech") -> None:
    from fivo._terminal.output import say
    from fivo.data import Scaling, as_samples
    from fivo.report import write_samples

    samples = as_samples(frames, sound.scaling or Scaling(0.0, 1.0))
    # What was recorded as the 16-bit sample k is written as k.
    write_samples(out, samples / 32767, sound.sample_rate)
    clipped = int((abs(samples) > 32767).sum())
    note = f", {clipped} samples clipped" if clipped else ""
    say(f"wrote {out}: {len(frames)} frames, {len(samples) / sound.sample_rate:.2f} s{note}")


def _prefix(prefix: str, length: int | None, dataset: "Dataset") -> "np.ndarray":
    from fivo.data import Music
    from fivo.errors import InputError

    split, _, index = prefix.partition(":")
    if split in dataset.splits and index.isdigit():
        pieces = dataset.splits[split]
        if int(index) >= len(pieces):
            raise InputError(f"--prefix {prefix!r} does not exist: {split} has sequences 0 to {len(pieces) - 1}.")
        frames = pieces[int(index)]
    elif Path(prefix).exists():
        frames = _read(Path(prefix), dataset.sound)
    else:
        what = "a MIDI file" if isinstance(dataset.sound, Music) else "a recording"
        raise InputError(f"--prefix must be SPLIT:INDEX (such as test:3) or {what}, got {prefix!r}.")
    if length is not None and not 1 <= length <= len(frames):
        raise InputError(f"--prefix-length must be 1 to {len(frames)}, got {length}.")
    return frames[:length]


def _read(path: Path, sound: "Music | Speech | None") -> "np.ndarray":
    from fivo.data import Scaling, Speech, as_frames, read_at_rate, read_midi

    if isinstance(sound, Speech):
        samples = read_at_rate(path, sound.sample_rate, resample=True).samples
        return as_frames(samples, sound.frame, sound.scaling or Scaling(0.0, 1.0))
    return read_midi(path, steps_per_quarter=1 if sound is None else sound.steps_per_quarter)
