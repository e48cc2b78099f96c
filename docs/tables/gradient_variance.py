"""How noisy the gradient of a training step is with the resampling term and its baselines: the second table of
`docs/gradients.md`.

Run it from the root of the repository with a run of `fivo fit`: `python docs/tables/gradient_variance.py RUN [DATA]`.
"""

import sys
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fivo import open_run
from fivo._building import build_model
from fivo._scoring import device_batch
from fivo.batch import Batch
from fivo.bounds import FIVO, BoundResult, learned
from fivo.gradients import MovingAverage, OtherFilters, Pathwise, ResamplingScore
from fivo.models import SequenceModel

NUM_SEQUENCES = 4
ESTIMATORS = {
    "pathwise": Pathwise(),
    "resampling-score": ResamplingScore(),
    "resampling-score, moving average": ResamplingScore(MovingAverage()),
    "resampling-score, 2 filters": ResamplingScore(OtherFilters(2)),
    "resampling-score, particles": ResamplingScore("particles"),
}


class Spread(NamedTuple):
    """Of the gradient of a training step: the norm of its average and its total variance."""

    norm: float
    variance: float


def spread(model: SequenceModel, bound: FIVO, batch: Batch, num_draws: int) -> Spread:
    """From independent draws; a moving average first sees as many runs."""
    parameters, rest = eqx.partition(model, eqx.is_inexact_array)

    @jax.jit
    def draw(bound: FIVO, key: jax.Array):
        def loss(parameters: SequenceModel) -> tuple[jax.Array, BoundResult]:
            result = bound(eqx.combine(parameters, rest), batch, key=key)
            return -jnp.mean(result.log_evidence / batch.lengths), result

        gradient, result = jax.grad(loss, has_aux=True)(parameters)
        return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(gradient)]), learned(bound, result, batch)

    keys = jax.random.split(jax.random.key(0), num_draws)
    if jax.tree.leaves(bound):
        for key in jax.random.split(jax.random.key(1), num_draws):
            bound = draw(bound, key)[1]
    gradients = np.stack([np.asarray(draw(bound, key)[0], np.float64) for key in keys])
    mean = gradients.mean(axis=0)
    return Spread(float(np.linalg.norm(mean)), float(((gradients - mean) ** 2).sum() / (num_draws - 1)))


def main(run_directory: str, data_dir: str | None, num_draws: int = 40) -> None:
    """Print the table: the untrained model and the trained one."""
    run = open_run(run_directory, data_dir=data_dir)
    sequences, lengths = run.dataset.splits["train"], run.dataset.lengths("train")
    chosen = np.argsort(lengths)[len(lengths) // 2 :][:NUM_SEQUENCES]
    batch = device_batch(sequences, chosen, int(lengths[chosen].max()))
    models = {"untrained": build_model(run.settings, run.dataset, key=jax.random.key(0)), "trained": run.model}
    print(f"lengths {sorted(int(n) for n in lengths[chosen])}, N = {run.settings.particles}, {num_draws} draws")
    print("| gradient | " + " | ".join(f"{name}: variance | by pathwise" for name in models) + " |")
    print("|---|" + "---|" * (2 * len(models)))
    first: dict[str, float] = {}
    for name, gradient in ESTIMATORS.items():
        cells = []
        for which, model in models.items():
            value = spread(model, FIVO(run.settings.particles, gradient=gradient), batch, num_draws).variance
            cells.append(f"{value:.3g} | {value / first.setdefault(which, value):.3g}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
