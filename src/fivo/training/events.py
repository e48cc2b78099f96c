"""TensorBoard event files (extra `tensorboard`)."""

from pathlib import Path
from typing import Any

from fivo.errors import InputError

FLUSH_SECONDS = 10


class EventWriter:
    """Writes every number of a metrics row as a scalar; what was written after `step` is taken back."""

    def __init__(self, directory: Path, step: int) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise InputError(
                "TensorBoard events need an extra package; install it with: pip install 'fivo[tensorboard]'."
            ) from None
        self.writer = SummaryWriter(str(directory / "events"), purge_step=step + 1, flush_secs=FLUSH_SECONDS)

    def write(self, row: dict[str, Any]) -> None:
        for name, value in row.items():
            if name != "step":
                self.writer.add_scalar(name, value, row["step"])

    def close(self) -> None:
        """Write what is still on its way to the disk."""
        self.writer.close()
