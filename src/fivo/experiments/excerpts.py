"""A piece of the data and a piece drawn from the model, to look at and to hear."""

import numpy as np

from fivo import runs
from fivo._run import Run
from fivo.data import Music

STEPS = 48


def write_excerpt(run: Run) -> None:
    """Write `sample.npz` of a run on music: the beginning of the first test piece, and as many new steps."""
    if not isinstance(run.dataset.sound, Music):
        return
    data = run.dataset.splits["test"][0][:STEPS]
    drawn = run.sample(STEPS).astype(np.uint8)
    excerpt = runs.Excerpt(data, drawn, max(1, round(run.dataset.sound.steps_per_quarter)))
    runs.write_excerpt(run.directory.path / runs.EXCERPT, excerpt)
