"""A model on any number of series of any lengths: in batches of similar lengths, with a key for each series."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, Key

from fivo._scoring import device_batch, scoring_plan, weights_dtype
from fivo.batch import Batch
from fivo.data import Split
from fivo.devices.mesh import checked_mesh, spread
from fivo.inference.filtering import filter_rows
from fivo.inference.forecasting import forecast_rows
from fivo.inference.rowfilters import Rows
from fivo.inference.rowwise import normal_quantiles
from fivo.inference.smoothing import impute_rows, smooth_rows
from fivo.models import LinearGaussian, SequenceModel
from fivo.smc import ParticleFilter

Parts = tuple[np.ndarray, ...]
Keys = Key[Array, " batch"]


@runtime_checkable
class Watch(Protocol):
    """Told what is being done."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """So many of all series are done."""

    def compiling(self, what: str) -> None:
        """A program is about to be compiled, which takes seconds."""


class _Silent(Watch):
    """Says nothing."""


@dataclass(frozen=True)
class Told(Watch):
    """Tells a function what is done.

    Args:
        progress: Called with what is being done, the series done and their number.
    """

    progress: Callable[[str, int, int], None]

    def __call__(self, what: str, done: int, total: int) -> None:
        """So many of all series are done."""
        self.progress(what, done, total)


@dataclass(frozen=True)
class SeriesModel:
    """A model, and how it is used on series.

    What it says of a series depends on neither the other series nor their order, but for the random key that each has.

    Args:
        model: The model.
        num_particles: Of its filters.
        key: A random key.
        watch: Told of progress.
        mesh: Devices that share out the series when they are scored, filtered or forecast; changes no number.
    """

    model: SequenceModel
    num_particles: int = 200
    key: Key[Array, ""] = field(default_factory=lambda: jax.random.key(0))
    watch: Watch = field(default_factory=_Silent)
    mesh: Mesh | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mesh", checked_mesh(self.mesh))

    def log_increments(self, split: Split, repeats: int) -> Float[np.ndarray, "repeat row"]:
        """log p̂(x_t | x_<t) of every row by independent filters; once where the model knows it exactly."""
        pf = ParticleFilter(self.num_particles, "systematic")

        def increments(batch: Batch, keys: Keys) -> Parts:
            if isinstance(self.model, LinearGaussian):
                return (np.asarray(self.model.log_increments(batch), np.float64)[..., None],)
            found = []
            for repeat in range(repeats):
                own = jax.vmap(lambda key, n=repeat: jax.random.fold_in(key, n))(keys)
                made = spread(_log_increments, self.mesh, (pf, self.model), batch, own)
                found.append(np.asarray(made, np.float64))
            return (np.stack(found, axis=-1),)

        return self.each(split, "scoring", increments)[0].T

    def filtered(self, split: Split, quantiles: Sequence[float]) -> Rows:
        """What a filter says of every row: [row, ...], one series after the other."""
        pf = ParticleFilter(self.num_particles, "systematic")

        def rows(batch: Batch, keys: Keys) -> Parts:
            found = filter_rows(pf, self.model, batch, quantiles=tuple(quantiles), key=keys, mesh=self.mesh)
            return tuple(np.asarray(leaf, np.float64) for leaf in found)

        return Rows(*self.each(split, "filtering", rows))  # pyright: ignore[reportArgumentType]

    def smoothed(self, split: Split, quantiles: Sequence[float], num_trajectories: int) -> Parts:
        """Mean [row, latent] and quantiles [row, quantile, latent] of latents given whole series; distinct [row]."""

        def smoothed(batch: Batch, keys: Keys) -> Parts:
            if isinstance(self.model, LinearGaussian):
                moments = self.model.smoothed(batch)
                mean = np.asarray(moments.means, np.float64)
                variance = np.diagonal(np.asarray(moments.covariances, np.float64), axis1=2, axis2=3)
                quantile = normal_quantiles(mean, np.sqrt(np.maximum(variance, 0)), quantiles)
                return mean, quantile, np.full(mean.shape[:2], num_trajectories)
            pf = ParticleFilter(self.num_particles)
            drawn = smooth_rows(pf, self.model, batch, num_trajectories=num_trajectories, key=keys)
            leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(drawn.latents)]
            flat = np.concatenate([leaf.reshape(*leaf.shape[:3], -1) for leaf in leaves], axis=-1)
            quantile = np.moveaxis(np.quantile(flat, quantiles, axis=2), 0, 2)
            return flat.mean(axis=2), quantile, np.asarray(drawn.distinct)

        return self.each(split, "smoothing", smoothed)

    def imputed(self, split: Split, num_samples: int) -> Parts:
        """Draws [row, sample, dim] of whole rows with the observed entries as they are, and distinct [row]."""

        def imputed(batch: Batch, keys: Keys) -> Parts:
            pf = ParticleFilter(self.num_particles)
            drawn, distinct = impute_rows(pf, self.model, batch, num_samples=num_samples, key=keys)
            return np.swapaxes(drawn, 1, 2), distinct

        return self.each(split, "imputing", imputed)

    def forecast(
        self,
        split: Split,
        horizon: int,
        *,
        inputs: Float[np.ndarray, "series horizon input"] | None,
        num_samples: int,
    ) -> Float[np.ndarray, "series sample horizon dim"]:
        """Draws of the rows that follow every series."""
        found: list[Any] = [None] * len(split)
        for batch, keys, indices in self.chunks(split, "forecasting"):
            drawn = forecast_rows(
                self.model,
                batch,
                horizon,
                inputs=None if inputs is None else inputs[np.maximum(indices, 0)],
                num_samples=num_samples,
                num_particles=self.num_particles,
                key=keys,
                mesh=self.mesh,
            )
            for slot, index in enumerate(indices):
                if index >= 0:
                    found[index] = drawn[slot]
        return np.stack(found)

    def each(self, split: Split, what: str, function: Callable[[Batch, Keys], Parts]) -> Parts:
        """What a function says of every step, all series one after the other, from arrays [batch, time, ...]."""
        found: list[Any] = [None] * len(split)
        for batch, keys, indices in self.chunks(split, what):
            parts = function(batch, keys)
            for slot, index in enumerate(indices):
                if index >= 0:
                    found[index] = [part[slot, : len(split[index])] for part in parts]
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def chunks(self, split: Split, what: str) -> Iterator[tuple[Batch, Keys, Int[np.ndarray, " slot"]]]:
        """Batches of series of similar lengths, a key for each, and which they are; -1 is an empty slot."""
        lengths = split.lengths
        keys = jax.random.split(self.key, len(lengths))
        done, shapes = 0, set()
        self.watch(what, 0, len(lengths))
        for indices, padded in scoring_plan(lengths, self.num_particles, mesh=self.mesh):
            # An empty slot repeats a series: sequences of no rows are refused elsewhere.
            chosen = np.where(indices < 0, indices.max(), indices)
            if (len(indices), padded) not in shapes:
                shapes.add((len(indices), padded))
                self.watch.compiling(f"for series of up to {padded:,} rows")
            yield device_batch(split, chosen, padded, weights_dtype(self.model)), keys[chosen], indices
            done += int((indices >= 0).sum())
            self.watch(what, done, len(lengths))


def _log_increments(
    pf_and_model: tuple[ParticleFilter, SequenceModel], batch: Batch, keys: Keys
) -> Float[Array, "batch time"]:
    pf, model = pf_and_model
    return pf(model, batch, key=keys).log_increments
