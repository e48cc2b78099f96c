"""The columns of `metrics.jsonl` that are drawn: what they are called, in which unit, on which axis."""

from typing import NamedTuple


class Measure(NamedTuple):
    """A quantity over training, what it means, and whether its axis is logarithmic."""

    title: str
    unit: str
    meaning: str
    log: bool = False

    @property
    def heading(self) -> str:
        """Title and unit in one line."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


MEASURES = {
    "bound": Measure("Training bound", "nats per timestep", "What training climbs, on the batch of the step."),
    "validation": Measure(
        "Validation bound", "nats per timestep", "The same bound on data not trained on; its highest point is kept."
    ),
    "kl": Measure(
        "KL from q to p", "nats per timestep", "How far proposals move away from the prior; near 0, latents are unused."
    ),
    "ess": Measure(
        "Effective sample size", "particles", "How many of the particles carry weight, on average over the steps."
    ),
    "gradient_norm": Measure(
        "Norm of the gradient", "", "Spikes mean unstable training: lower the learning rate, or clip.", log=True
    ),
}
