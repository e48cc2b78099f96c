"""Parity with the authors' released code: weights that it trained, scored and differentiated by ours.

`python benchmarks/released.py DIRECTORY --data DIR [--json FILE]` reads every `DATASET_BOUND.npz` of a directory: a
VRNN trained on DATASET with BOUND, in the layout of the released TensorFlow code (Sonnet's names, `|` for `/`). It
prints test bounds (--particles, averaged over --repeats evaluations) and, where a file holds Adam's second moments, how
those of our gradient at its weights, over --batches of training data (0 for none), compare.
"""

import argparse
import json
import sys
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float

import fivo
from fivo._terminal.progress import Bar
from fivo.data import Dataset, pad
from fivo.experiments.experiment import find_experiment
from fivo.files import write_atomically
from fivo.inference import Trained, evaluate
from fivo.models import VRNN, BernoulliEmission, NormalLatent
from fivo.settings import Settings, make_settings
from fivo.training import code_commit

TABLE5 = find_experiment("table5")
BATCH, PARTICLES, LONGEST, DECAY = 4, 4, 100, 0.999  # of the training; DECAY is that of Adam's second moments
BOUNDS = {"elbo": fivo.bounds.ELBO(1), "iwae": fivo.bounds.IWAE(PARTICLES), "fivo": fivo.bounds.FIVO(PARTICLES)}
NETWORKS = ("data_encoder", "latent_encoder", "prior_fcnet", "approximate_posterior_fcnet", "generative_fcnet")
COUNTS = {"particles": 128, "repeats": 3, "batches": 600, "seed": 0}
Arrays = dict[str, np.ndarray]
Progress = Callable[[str, int, int], None]


class ReleasedLatent(NormalLatent):
    """Normals without the floor under the scales that ours have."""

    def prior(self, outputs: Float[Array, " outputs"]) -> dist.Normal:
        loc, raw = jnp.split(outputs, 2)
        return dist.Normal(loc, jax.nn.softplus(raw + 0.5))

    def proposal(self, outputs: Float[Array, " outputs"], prior: dist.Distribution) -> dist.Normal:
        residual = self.prior(outputs)
        return dist.Normal(prior.mean + residual.loc, residual.scale)


class ReleasedVRNN(VRNN):
    """The proposal reads the encoding of the raw frame, the recurrence that of the centred one. Not for streams."""

    def encode(self, sequence: fivo.Sequence) -> tuple[Any, Array, Array]:
        layer = self.proposal_network.hidden
        raw = layer.biased(layer.part(1, self.data_encoder.network(sequence.observations)))
        context, _, history = super().encode(sequence)
        return context, raw, history


def layers(model: VRNN) -> list[tuple[str, str, Any]]:
    """Our layers, each after the released names of its weights and bias. The LSTM's gates have the same order."""
    encoders, normals = (
        (model.data_encoder.network, model.latent_encoder),
        (model.prior_network, model.proposal_network),
    )
    found: list[tuple[str, str, Any]] = [("lstm_cell|kernel", "lstm_cell|bias", model.recurrence.gates)]
    for name, network in zip(NETWORKS, (*encoders, *normals, model.emission_network), strict=True):
        found.append((f"{name}|linear_0|w", f"{name}|linear_0|b", network.hidden))
        found.append((f"{name}|linear_1|w", f"{name}|linear_1|b", network.output))
    return found


def named(model: VRNN) -> Arrays:
    """The arrays of a model, or of its gradient, with the released names and shapes."""
    weights = {name: np.concatenate([np.asarray(w) for w in layer.weights]) for name, _, layer in layers(model)}
    return weights | {name: np.asarray(layer.bias) for _, name, layer in layers(model)}


def read_arrays(path: Path) -> Arrays:
    """The arrays of a file; nothing in it is executed."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise fivo.InputError(f"{path.name!r} is not an .npz of plain arrays ({error}); get it anew.") from None


def array_of(arrays: Arrays, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """One array of a checkpoint, if it is there and fits."""
    if name not in arrays or shape not in (None, arrays[name].shape):
        given = f"shape {arrays[name].shape}" if name in arrays else "none"
        raise fivo.InputError(f"a checkpoint must have {name!r} of shape {shape or '(hidden,)'}, got {given}.")
    return arrays[name]


def loaded(arrays: Arrays, train_mean: np.ndarray) -> tuple[ReleasedVRNN, int]:
    """The model of a checkpoint, and the step it was saved at."""
    size = array_of(arrays, "prior_fcnet|linear_0|b").size
    emission = BernoulliEmission(np.asarray(train_mean, np.float32))
    model = ReleasedVRNN(emission, size, latent=ReleasedLatent(size), key=jax.random.key(0))
    new = []
    for weights, bias, layer in layers(model):
        rows = np.cumsum([0, *(w.shape[0] for w in layer.weights)])
        joined = array_of(arrays, weights, (int(rows[-1]), *layer.bias.shape))
        parts = tuple(map(jnp.asarray, np.split(joined, rows[1:-1])))
        new += [parts, jnp.asarray(array_of(arrays, bias, layer.bias.shape))]
    where = lambda m: [leaf for _, _, layer in layers(m) for leaf in (layer.weights, layer.bias)]  # noqa: E731
    return eqx.tree_at(where, model, new), int(array_of(arrays, "global_step", ()))


@dataclass(frozen=True)
class ReleasedRun(Trained):
    """A checkpoint as the evaluator takes it."""

    settings: Settings
    dataset: Dataset
    released: tuple[ReleasedVRNN, int]
    model = property(lambda self: self.released[0])
    step = property(lambda self: self.released[1])


def pieces(sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sequences cut into pieces of at most 100 frames, as they were for the training of the weights."""
    return [x[start : start + LONGEST] for x in sequences for start in range(0, len(x), LONGEST)]


def second_moments(
    model: VRNN, bound: str, dataset: Dataset, count: int, seed: int, progress: Progress
) -> tuple[Arrays, np.ndarray]:
    """Mean squares of the gradient over random training batches, by name, and the squared norms of the gradients."""
    sequences, rng = pieces(dataset.splits["train"]), np.random.default_rng(seed)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model: VRNN, batch: fivo.Batch, key: Array) -> Array:
        return -jnp.mean(BOUNDS[bound](model, batch, key=key).log_evidence / batch.lengths)

    totals, norms = {name: np.zeros(value.shape) for name, value in named(model).items()}, np.zeros(count)
    for index in range(count):
        observations, lengths = pad(sequences, rng.choice(len(sequences), BATCH, replace=False), LONGEST)
        batch = fivo.Batch(jnp.asarray(observations), jnp.asarray(lengths))
        for name, value in named(gradient(model, batch, jax.random.fold_in(jax.random.key(seed), index))).items():
            totals[name] += value**2
            norms[index] += np.sum(value**2)
        progress("moments", index + 1, count)
    return {name: total / count for name, total in totals.items()}, norms


def stored_moments(arrays: Arrays, step: int) -> Arrays:
    """Adam's second moments in a checkpoint, corrected for their start at zero; empty where it has none."""
    slots = [name for name in arrays if name.endswith("|Adam_1")]
    return {name.removesuffix("|Adam_1"): arrays[name] / (1 - DECAY**step) for name in slots}


def compare_moments(ours: Arrays, norms: np.ndarray, theirs: Arrays) -> dict[str, Any]:
    """Ratios of ours to theirs, and for each tensor the correlation of the logarithms of its entries."""
    tensors = {}
    for name, value in ours.items():
        stored = array_of(theirs, name, value.shape)
        alive = (value > 0) & (stored > 0)  # inputs that never vary and units that never fire have no gradient
        correlation = np.corrcoef(np.log(value[alive]), np.log(stored[alive]))[0, 1]
        tensors[name] = {"ratio": float(value.sum() / stored.sum()), "correlation": float(correlation)}
    ratio = float(norms.mean() / sum(theirs[name].sum(dtype=np.float64) for name in ours))
    # Adam's moving average is as noisy as a mean over (1 + DECAY) / (1 - DECAY) = 1,999 batches.
    noise = norms.std(ddof=1) / norms.mean() * np.sqrt(1 / len(norms) + (1 - DECAY) / (1 + DECAY))
    return {"ratio": ratio, "standard_error": float(ratio * noise), "batches": len(norms), "tensors": tensors}


def measure(path: Path, dataset: Dataset, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of one checkpoint."""
    arrays, bound = read_arrays(path), path.stem.rpartition("_")[2]
    model, step = loaded(arrays, dataset.train_mean)
    settings = {"dataset": dataset.name, "bound": bound, "hidden": model.recurrence.size}
    released = ReleasedRun(make_settings(settings), dataset, (model, step))
    with Bar(path.stem) as bar:

        def progress(what: str, done: int, total: int) -> None:
            bar.label = f"{path.stem}: {what}"
            bar.update(done, total=total)

        counts = {name: getattr(options, name) for name in COUNTS if name != "batches"}
        scores = msgspec.to_builtins(evaluate(released, **counts, progress=progress))
        row = {**settings, "step": step, "bounds": scores["bounds"], "reported": scores["reported"]}
        theirs = stored_moments(arrays, step)
        if theirs and options.batches > 1:
            ours, norms = second_moments(model, bound, dataset, options.batches, options.seed, progress)
            again, _ = second_moments(model, bound, dataset, options.batches, options.seed + 1, progress)
            row["moments"] = compare_moments(ours, norms, theirs)
            for name, tensor in compare_moments(ours, norms, again)["tensors"].items():
                row["moments"]["tensors"][name]["control"] = tensor["correlation"]
    return row


def as_markdown(results: dict[str, Any]) -> str:
    """Test bounds beside those of the paper's Table 5, which has the same N and learning rate; second moments."""
    cells = [cell for cell in tomllib.loads(TABLE5.read_text())["published"] if not cell["smoothing"]]
    paper = {(cell["dataset"], cell["bound"]): f"{cell['value']:.2f}" for cell in cells if cell["split"] == "test"}
    bounds = ["| set | trained with | steps | ELBO | IWAE | FIVO | reported | paper |", "|---|---|" + "--:|" * 6]
    ratios = ["| set | trained with | ratio | of tensors | log-correlations | control |", "|---|---|" + "--:|" * 4]
    for row in results["checkpoints"]:
        start = f"| {row['dataset']} | {row['bound'].upper()} |"
        values = [*(row["bounds"][name]["nats_per_step"] for name in BOUNDS), row["reported"]["nats_per_step"]]
        scores = " | ".join(f"{value:.3f}" for value in values)
        bounds.append(f"{start} {row['step']:,} | {scores} | {paper.get((row['dataset'], row['bound']), '–')} |")
        if "moments" in row:
            part, tensors = row["moments"], row["moments"]["tensors"].values()
            values = [[tensor[key] for tensor in tensors] for key in ("ratio", "correlation", "control")]
            spans = " | ".join(f"{min(column):.3f} to {max(column):.3f}" for column in values)
            ratios.append(f"{start} {part['ratio']:.3f} ± {part['standard_error']:.3f} | {spans} |")
    return "\n".join([*bounds, "", *ratios])


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All figures of all checkpoints, with the command and the commit behind them."""
    counts = " ".join(f"--{name} {getattr(options, name)}" for name in COUNTS)
    command = f"python benchmarks/released.py DIRECTORY --data DIR {counts}"
    results: dict[str, Any] = {"command": command, "commit": code_commit(), "split": "test", "checkpoints": []}
    for name in sorted({path.stem.rpartition("_")[0] for path in options.directory.glob("*_*.npz")}):
        print(f"reading {name}", file=sys.stderr, flush=True)
        dataset = fivo.data.load(name, data_dir=options.data)
        for path in (options.directory / f"{name}_{bound}.npz" for bound in BOUNDS):
            if path.exists():
                results["checkpoints"].append(measure(path, dataset, options))
            if options.json is not None:  # an interrupted run leaves what it has measured
                write_atomically(options.json, (json.dumps(results, indent=2, allow_nan=False) + "\n").encode())
    if not results["checkpoints"]:
        raise fivo.InputError(f"{str(options.directory)!r} must hold checkpoints DATASET_BOUND.npz, got none.")
    return results


def main(arguments: list[str] | None = None) -> int:
    """0, or 2 after a sentence about what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="where the checkpoints are")
    parser.add_argument("--data", type=Path, help="where the music is [$FIVO_DATA, then the user's cache]")
    for name, default in COUNTS.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"[{default}]")
    parser.add_argument("--json", type=Path, help="where the figures go, besides the table that is printed")
    try:
        print(as_markdown(run(parser.parse_args(arguments))))
    except fivo.InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
