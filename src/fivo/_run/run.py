"""A trained run, read back from its directory."""

import dataclasses
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from fivo import inference, serialization
from fivo._building import build_dataset, build_model, with_twist
from fivo._run.backtesting import backtest_run
from fivo._run.history import History
from fivo.bounds import Bound
from fivo.data import Column, Dataset, TableFacts, TableSchema
from fivo.errors import InputError
from fivo.files import DamagedError
from fivo.inference.series import SeriesModel
from fivo.models import SequenceModel
from fivo.runs import Backtest, Best, Diagnosis, Result, Score, TableRecord
from fivo.settings import OwnBound, OwnModel, Settings, Table, changed
from fivo.training import RunDirectory, digest, name_of
from fivo.training.groups import trainable, trained_of, with_parameters

WIDTH = 100
"""Characters of a line that describes a run."""


@dataclass(frozen=True, repr=False)
class Run(inference.Trained):
    """A trained run: its settings, its data, and the model that was best on validation.

    `fit` and `open_run` make them.
    """

    directory: RunDirectory
    """Its files."""
    settings: Settings
    """What it was trained with."""
    data: Dataset | None
    """The dataset, unless the run is of a table that is not here."""
    template: SequenceModel | None = field(default=None, repr=False)
    """The untrained model, where it is one of the user's own."""
    bound_template: Bound | None = field(default=None, repr=False)
    """The untrained objective, where it is one of the user's own and was given."""
    _temporary: Any = field(default=None, repr=False)
    """Holds the directory of a run that is not kept; it is removed with the run."""

    @property
    def dataset(self) -> Dataset:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The data that the run was trained on."""
        if self.data is None:
            raise InputError(
                f"the table {self.settings.data.dataset!r} that the run was trained on is not there; put it back, or "
                "give other tables to score, filter, forecast, ..."
            )
        return self.data

    @property
    def model(self) -> SequenceModel:
        """The model with the parameters that were best on validation."""
        return self._model

    @cached_property
    def _model(self) -> SequenceModel:
        template = self.template
        if template is None:
            template = build_model(self.settings, self._facts, key=jax.random.key(0))
        return with_parameters(template, self._restored("model", trainable(template)))

    @cached_property
    def _facts(self) -> Any:
        return TableFacts.from_plain(self.directory.read(TableRecord).facts) if self.data is None else self.data

    @property
    def table(self) -> TableSchema | None:
        """How the table was read that the run was trained on; None for other data."""
        return self._facts.table

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the entries of a frame are, and how they were scaled."""
        return self._facts.columns

    def stream(
        self,
        *,
        num_particles: int = 100,
        seed: int = 0,
        rate: float | None = None,
        state: str | os.PathLike | bytes | None = None,
        **options: Any,
    ) -> inference.RowStream:
        """A scorer of rows that come one by one: `scorer = run.stream()`, then `scorer(row)` for every row.

        Args:
            num_particles: Of its filter.
            seed: Random seed.
            rate: A false-alarm rate: rows then have p-values and alarms, calibrated on the run's held-out data.
            state: What `RowStream.save` or `to_bytes` saved, to continue from there.
            options: As for `fivo.inference.RowStream`.

        Returns:
            The stream, to be called with one row after the other.
        """
        if self.table is None:
            raise InputError(
                f"{str(self.directory.path)!r} was not trained on a table; fit one with `fivo fit my.csv`."
            )
        given: dict[str, Any] = {}
        if rate is not None:
            model = SeriesModel(self.model, num_particles, jax.random.key(seed))
            given = {"calibration": inference.Ordinary.held_out(self, model).rows, "rate": rate}
        scorer = inference.RowStream(self.model, self.table, num_particles=num_particles, seed=seed, **given, **options)
        return scorer if state is None else scorer.restore(state)

    def export(self, path: str | os.PathLike, **options: Any) -> dict[str, Any]:
        """Write the model as programs that JAX runs without this package; options as for `inference.export_model`.

        Args:
            path: The file, such as model.stablehlo.
            options: Such as `num_particles`, `horizon` and `platforms`.

        Returns:
            What the file says of itself.
        """
        facts = self._facts
        return inference.export_model(
            path,
            self.model,
            columns=facts.columns,
            input_columns=facts.input_columns,
            schema=facts.table,
            **options,
        )

    @property
    def own_bound(self) -> Bound | None:
        """The objective as it was trained, where it is one of the user's own and was given; else None."""
        if not isinstance(self.settings.bound, OwnBound) or self.bound_template is None:
            return None
        trained = trained_of(self.bound_template)
        if trained is None:
            return self.bound_template
        return eqx.combine(self._restored("bound", trained), self.bound_template)

    @property
    def step(self) -> int:
        """The training step that the model is of."""
        return self._best[1].step

    @property
    def result(self) -> Result:
        """What training ended with."""
        return self.directory.result()

    @property
    def history(self) -> "History":
        """What was logged while training, a table with one row per line of metrics."""
        return History(self.directory.metrics())

    def evaluate(self, *, bound: Bound | None = None, **options: Any) -> Score:
        """Bounds on a split.

        Args:
            bound: Any objective to score the run with, in place of `bounds`. The one that the run was trained with is
                scored as it was trained, with its own parameters.
            options: As for `fivo.inference.evaluate`.

        Returns:
            The scores.
        """
        if bound is None:
            return inference.evaluate(self, **options)
        if "bounds" in options:
            raise InputError("`bound` must come without `bounds`: one objective, or several by name.")
        if not callable(bound):
            raise InputError(f"bound must be callable as bound(model, batch, key=key), got {bound!r:.60}.")
        return inference.evaluate(self, bounds=dict([self._scored_with(bound)]), **options)

    def _scored_with(self, bound: Bound) -> tuple[str, Bound]:
        """The name of an objective, and the objective: as trained, where it is the run's own."""
        chosen = self.settings.bound
        if isinstance(chosen, OwnBound) and chosen.bound_digest == digest(bound):
            return chosen.bound_name, dataclasses.replace(self, bound_template=bound).own_bound or bound
        return name_of(bound), bound

    def diagnose(self, **options: Any) -> Diagnosis:
        """Find out how tight the bound is, and what limits it.

        Args:
            options: As for `fivo.inference.diagnose`.

        Returns:
            The diagnosis.
        """
        return inference.diagnose(self, **options)

    def backtest(self, *, fit_companion: Any = None, **options: Any) -> Backtest:
        """Forecasts of the run's test rows, compared with seasonal-naive and an exact linear-Gaussian model.

        The scores are kept in the run, and so is the linear-Gaussian model, which is fitted to the same training rows.

        Args:
            fit_companion: Fits that model to a dataset into a directory; by default quietly.
            options: windows (origins in each series, 5), horizon (rows of a forecast, 24), season (rows of one, by
                default guessed from the step of time), table (to take windows from instead), num_samples,
                num_particles, seed, progress.

        Returns:
            The scores of every model, and of every window.
        """
        from fivo._run.fitting import fit_linear_gaussian

        found = backtest_run(self, fit_companion=fit_companion or fit_linear_gaussian, **options)
        self.directory.write(found)
        return found

    def sample(self, length: int, *, seed: int = 0, prefix: np.ndarray | None = None) -> np.ndarray:
        """New frames from the model.

        Args:
            length: How many.
            seed: Random seed.
            prefix: Frames [time, dim] to continue.

        Returns:
            The frames [length, dim], without the prefix.
        """
        return inference.sample(self.model, length, key=jax.random.key(seed), prefix=prefix)

    def _restored(self, part: str, like: Any) -> Any:
        prefix = f"[{part!r}]"
        arrays = {name.removeprefix(prefix): a for name, a in self._best[0].items() if name.startswith(prefix)}
        return serialization.from_arrays(arrays, like, self.directory.best)

    @cached_property
    def _best(self) -> tuple[dict[str, np.ndarray], Best]:
        where, training = str(self.directory.path), self.settings.training
        if not self.directory.best.exists() and not (self.directory.path / Result.FILE).exists():
            raise InputError(
                f"{where!r} has no validated checkpoint yet; train it for at least "
                f"{min(training.validate_every, training.steps)} steps."
            )
        try:
            if self.directory.best.exists():
                return self.directory.read_best()
        except DamagedError:
            pass
        raise DamagedError(
            f"{str(self.directory.best)!r} is lost or damaged; run `fivo fit` with the run's settings again, which "
            "makes it anew."
        )

    def __repr__(self) -> str:
        """Where it is, what is special about it and how far it has come, in a few lines."""
        shown = [f"{name}={value!r:.60}" for name, value in changed(self.settings).items()]
        lines = [f"Run({str(self.directory.path)!r})", *textwrap.wrap(", ".join(shown), WIDTH), self._state()]
        return "\n  ".join(line for line in lines if line)

    def _state(self) -> str:
        try:
            progress = self.directory.progress()
        except InputError as problem:
            return str(problem)
        if progress is None:
            return "not trained yet"
        state = f"step {progress.step} of {self.settings.training.steps}"
        if progress.best_validation is None:
            return f"{state}, not validated yet"
        return f"{state}, best step {progress.best_step}: {progress.best_validation:.4f} nats per step on validation"


def open_run(
    directory: str | os.PathLike,
    *,
    model: SequenceModel | Callable[[Dataset], SequenceModel] | None = None,
    bound: Bound | None = None,
    data_dir: str | Path | None = None,
    dataset: Dataset | None = None,
) -> Run:
    """The run of a directory.

    Args:
        directory: What was `out` in training.
        model: For a run of a model of your own, that model untrained, or a function that makes it from the dataset;
            its parameters are replaced by the run's, which must have the same names, shapes and types.
        bound: For a run trained with an objective of your own, that objective, if `evaluate` is to score it too.
        data_dir: Where to look for datasets first.
        dataset: The data, for a run that was given its data as an object. It must be the data of the run.

    Returns:
        The run.
    """
    files = RunDirectory(directory)
    settings = files.config()
    if dataset is None and isinstance(settings.data, Table) and not os.path.exists(settings.data.dataset):
        return Run(files, settings, None)
    dataset = build_dataset(settings, data_dir) if dataset is None else dataset
    if dataset.fingerprint != files.fingerprint():
        raise InputError(
            f"{str(directory)!r} was trained on other data than what {settings.data.dataset!r} is now; restore that "
            "data."
        )
    if model is not None and not isinstance(settings.model, OwnModel):
        raise InputError(f"{str(directory)!r} is a run of the model {settings.model.kind!r}; leave `model` out.")
    if model is not None:
        model = model if isinstance(model, SequenceModel) else made_model(model, dataset)
        model = with_twist(model, settings, dataset, key=jax.random.key(0))
    return Run(files, settings, dataset, model, bound)


def made_model(function: Callable[[Dataset], SequenceModel], dataset: Dataset) -> SequenceModel:
    """The model that a user's function makes from a dataset."""
    if not callable(function):
        raise InputError(
            f"model must be a SequenceModel, or a function that makes one of a dataset, got {function!r:.60}."
        )
    model = function(dataset)
    if not isinstance(model, SequenceModel):
        raise InputError(f"{name_of(function)} must return a SequenceModel, got {model!r:.60}.")
    return model
