"""Recordings of speech as sequences of frames (Section 5.2 of the paper)."""

from fivo.data.speech.framing import as_frames, as_samples
from fivo.data.speech.recording import Recording, read_at_rate, read_recording
from fivo.data.speech.timit import TimitCheck, check_timit

__all__ = ["Recording", "TimitCheck", "as_frames", "as_samples", "check_timit", "read_at_rate", "read_recording"]
