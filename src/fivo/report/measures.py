"""The columns of `metrics.jsonl` that are drawn: what they are called, in which unit, on which axis."""

from typing import NamedTuple


class Measure(NamedTuple):
    """A quantity over training; `log` asks for a logarithmic axis."""

    title: str
    unit: str
    log: bool = False

    @property
    def heading(self) -> str:
        """Title and unit in one line."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


MEASURES = {
    "bound": Measure("Training bound", "nats per timestep"),
    "validation": Measure("Validation bound", "nats per timestep"),
    "kl": Measure("KL from q to p", "nats per timestep"),
    "ess": Measure("Effective sample size", "particles"),
    "gradient_norm": Measure("Norm of the gradient", "", log=True),
}
