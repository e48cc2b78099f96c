"""`fit`: any model, any data, any objective, any optimizer."""

import inspect
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import msgspec
from jax.sharding import Mesh
from jaxtyping import PyTree

from fivo import serialization
from fivo._building import build_dataset, build_model, with_twist
from fivo._run.auto import AUTO, BUDGET, check_settings, choose
from fivo._run.run import Run, made_model
from fivo._terminal.progress import TrainingProgress
from fivo.bounds import Bound
from fivo.data import KNOWN, TIMIT, Dataset, is_table
from fivo.errors import InputError
from fivo.models import SequenceModel
from fivo.settings import (
    DEFAULTS,
    ONLY_TABLES,
    OPTIONS,
    OwnBound,
    OwnData,
    OwnModel,
    OwnOptimizer,
    Settings,
    Source,
    Table,
    make_settings,
)
from fivo.training import (
    Callback,
    Optimizer,
    Plan,
    RunDirectory,
    Update,
    Watchers,
    digest,
    make_plan,
    name_of,
    own_optimizer,
    train,
)
from fivo.training.groups import trainable, with_parameters
from fivo.training.memory_estimate import check_memory
from fivo.training.plan import model_key


def fit(
    model: str | SequenceModel | Callable[[Dataset], SequenceModel],
    data: str | Path | Dataset | Any = None,
    *,
    bound: str | Bound | None = None,
    optimizer: Any = None,
    validation: Bound | None = None,
    updates: Sequence[Update] = (),
    out: str | os.PathLike | None = None,
    callbacks: Sequence[Callback] = (),
    config: Mapping[str, Any] | None = None,
    override: bool = False,
    progress: bool = True,
    data_dir: str | Path | None = None,
    mesh: Mesh | None = None,
    **settings: Any,
) -> Run:
    """Train a model on data, or continue a run that was interrupted; one that is done is only read.

    Args:
        model: A `SequenceModel` of your own, a function that makes one of the dataset, or a name: "vrnn",
            "srnn", "dmm", "linear-gaussian", or "auto" for the best of a few small ones on a table, by forecasts of its
            validation rows, within the time `budget` (by default "5min").
        data: A `Dataset`, a name or a path (see `fivo.data.load`; tables too, with the settings id, time, values, ...),
            or what `Dataset.from_arrays` takes as its training sequences: an array [sequence, time, dim] or a list of
            arrays [time, dim].
        bound: An objective such as `fivo.bounds.FIVO(4)`, any callable `bound(model, batch, *, key)` that returns a
            `BoundResult` or log p̂ [sequence], or a name: "elbo", "iwae", "fivo" or "exact". Float arrays
            of an objective are trained with the model.
        optimizer: An optax transformation; by default Adam, with the settings learning_rate, weight_decay, schedule,
            warmup and clip.
        validation: Chooses the best step on the validation split; by default the objective itself. A run is not
            continued with another.
        updates: Further losses with separate parameters (`fivo.training.Update`). A run is not continued with
            others, as far as their optimizers, the parameters that they train and the names of their functions tell.
        out: The run's directory. The same call resumes an interrupted run, to the same bits. None keeps the run
            only as long as the object that is returned.
        callbacks: Called with a `fivo.training.Event` at every line of metrics; one that returns True ends training. A
            run that ended so is done: calls with the same steps, with or without callbacks, only read it. Ask for more
            steps to train it further.
        config: Plain values to record with the run: what a closure hides, such as the rate of an own optimizer. A run
            is not continued where they differ.
        override: Continue a run although its settings were others.
        progress: Show progress on standard error.
        data_dir: Where to look for datasets first.
        mesh: Devices that share out the sequences of a step and of a validation, such as `fivo.devices.data_mesh(4)`.
            It is not a setting: a run continues on any number of devices that divides the batch size, to the same
            estimates. A bound of your own is given one key per device, and draws other numbers on other numbers of
            devices.
        **settings: All other options of `fivo fit`: steps, batch_size, seed, validate_every, patience, average, ...;
            recipe="tuned" selects a set of them.

    Returns:
        The run: `run.model`, `run.history`, `run.evaluate()`, `run.diagnose()`.
    """
    if isinstance(model, str) and model == AUTO:
        others = {
            "bound": bound,
            "optimizer": optimizer,
            "validation": validation,
            "updates": updates,
            "config": config,
        }
        check_settings({name: value for name, value in others.items() if value})
        return fit_auto(data, out=out, callbacks=callbacks, progress=progress, data_dir=data_dir, **settings)
    plan = prepare(
        model,
        data,
        bound=bound,
        optimizer=optimizer,
        validation=validation,
        updates=updates,
        config=config,
        data_dir=data_dir,
        settings=settings,
    )
    temporary = _Temporary() if out is None else None
    directory = Path(temporary.name) if temporary is not None else Path(os.fspath(out or ""))
    with _watched(plan, callbacks, progress) as watchers:
        train(plan, directory, override=override, watchers=watchers, mesh=mesh)
    return run_of(plan, directory, temporary)


def fit_auto(
    data: Any,
    *,
    out: str | os.PathLike | None = None,
    budget: str | float | int = BUDGET,
    horizon: int | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
    data_dir: str | Path | None = None,
    **settings: Any,
) -> Run:
    """The best of a few small models of a table, as `fit("auto", ...)` trains and compares them.

    Args:
        data: A table: its path, or a `Dataset`.
        out: The run's directory; None keeps the run only as long as the object that is returned.
        budget: Time for training all of them together, such as "5min".
        horizon: Rows of the forecasts that they are compared by; by default a season, or 8, or as many as fit.
        callbacks: As for `fit`.
        progress: Show progress on standard error.
        data_dir: Where to look for datasets first.
        **settings: How to read the table; seed and batch_size.
    """
    check_settings(settings)

    def make_plan(candidate: dict[str, Any]) -> Plan:
        return prepare(data=data, data_dir=data_dir, settings={**settings, **candidate})

    def trained(plan: Plan, directory: Path, name: str, until: Callback) -> Run:
        with _watched(plan, (*callbacks, until), progress) as watchers:
            train(plan, directory, watchers=watchers)
        return run_of(plan, directory)

    temporary = _Temporary() if out is None else None
    directory = Path(temporary.name) if temporary is not None else Path(os.fspath(out or ""))
    _, plan = choose(make_plan, directory, budget=budget, horizon=horizon, train=trained)
    return run_of(plan, directory, temporary)


def fit_linear_gaussian(dataset: Dataset, directory: str | os.PathLike, *, progress: bool = False) -> Run:
    """An exact linear-Gaussian model of a dataset, or the one that is in the directory already."""
    return fit("linear-gaussian", dataset, out=directory, progress=progress)


def run_of(plan: Plan, directory: str | os.PathLike, temporary: Any = None) -> Run:
    """The run that a plan was trained into."""
    template = plan.model if isinstance(plan.settings.model, OwnModel) else None
    bound_template = plan.bound if isinstance(plan.settings.bound, OwnBound) else None
    return Run(RunDirectory(directory), plan.settings, plan.dataset, template, bound_template, temporary)


class _Temporary:
    """A directory that is removed with this object, or when Python ends."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="fivo-run-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


@contextmanager
def _watched(plan: Plan, callbacks: Sequence[Callback], progress: bool) -> Iterator[Watchers]:
    for callback in callbacks:
        if not callable(callback):
            raise InputError(f"callbacks must be functions of a fivo.training.Event, got {callback!r:.60}.")
    if not progress:
        yield Watchers(callbacks=tuple(callbacks))
        return
    with TrainingProgress(plan.settings.training.steps) as bar:
        yield Watchers(report=bar, compiling=bar.compiling, callbacks=tuple(callbacks))


def prepare(
    model: Any = None,
    data: Any = None,
    *,
    bound: Any = None,
    optimizer: Any = None,
    validation: Bound | None = None,
    updates: Sequence[Update] = (),
    config: Mapping[str, Any] | None = None,
    data_dir: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    model_name: str = "",
    bound_name: str = "",
    data_name: str = "",
) -> Plan:
    """The plan of a call of `fit`: names go into the settings; objects are kept separately, with their digests.

    Args:
        model, data, bound, optimizer, validation, updates, config, data_dir: As for `fit`.
        settings: All other settings by their flat names.
        model_name: What to call a model of the user's own; by default its class or function.
        bound_name: What to call an objective of the user's own.
        data_name: What to call a dataset that is given as an object; by default its own name.
    """
    flat = {name: _listed(value) for name, value in (settings or {}).items()}
    if data is not None and "dataset" in flat:
        raise InputError(f"the dataset was given twice, as `data` and as dataset={flat['dataset']!r:.60}.")
    if flat.get("init_from"):
        flat["init_from"] = os.path.abspath(os.path.expanduser(os.fspath(flat["init_from"])))
    flat |= {section: value for section, value in (("model", model), ("bound", bound)) if isinstance(value, str)}
    base = msgspec.structs.replace(DEFAULTS, own=_plain(config or {}))
    if data is None or isinstance(data, str | os.PathLike):
        flat |= {} if data is None else {"dataset": os.fspath(data)}
        base = msgspec.structs.replace(base, data=_source_of(flat))
        source = make_settings({name: value for name, value in flat.items() if name in OF_DATA}, base)
        dataset = build_dataset(source, data_dir)
        flat["dataset"] = dataset_setting(source.data.dataset)
    else:
        dataset = data if isinstance(data, Dataset) else Dataset.from_arrays(data)
        if dataset.name in KNOWN:
            flat["dataset"] = dataset.name
        else:
            base = msgspec.structs.replace(base, data=OwnData(dataset=data_name or dataset.name))
    own_model = None if model is None or isinstance(model, str) else model
    own_bound: Any = None if bound is None or isinstance(bound, str) else bound
    _check_bound(own_bound)
    _check_bound(validation)
    rule = None if optimizer is None else own_optimizer(optimizer)
    if own_model is not None:
        base = msgspec.structs.replace(base, model=OwnModel(model_name=model_name or name_of(own_model)))
    if own_bound is not None:
        chosen = OwnBound(bound_name=bound_name or name_of(own_bound), bound_digest=digest(own_bound))
        base = msgspec.structs.replace(base, bound=chosen)
    if rule is not None:
        base = msgspec.structs.replace(base, optimizer=OwnOptimizer(optimizer_name=name_of(optimizer)))
    chosen = make_settings(flat, base)
    untrained = _untrained(own_model, chosen, dataset)
    return make_plan(
        _with_digests(chosen, untrained, rule, updates, validation),
        dataset,
        untrained,
        bound=own_bound,  # pyright: ignore[reportArgumentType]
        validation=validation,
        optimizer=rule,
        updates=tuple(updates),
    )


def _listed(value: Any) -> Any:
    """Names given as a list, as `Dataset.from_table` takes them, in the form that settings keep: "lat,lon"."""
    is_list = isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(name, str) for name in value)
    return ",".join(value) if is_list else value


def _source_of(flat: Mapping[str, Any]) -> Source | Table:
    """Where data comes from: a table if its name or any setting indicates one."""
    named = str(flat.get("dataset") or DEFAULTS.data.dataset)
    if named not in (*KNOWN, TIMIT) and (is_table(named) or any(name in flat for name in ONLY_TABLES)):
        return Table(dataset=named)
    return Source()


def _check_bound(bound: Any) -> None:
    if bound is None:
        return
    if isinstance(bound, type):
        raise InputError(
            f"bound must be an objective, such as fivo.bounds.FIVO(4), got the class {bound.__name__}; make one of it."
        )
    got = f"{bound!r:.60}"
    if callable(bound):
        try:
            inspect.signature(bound).bind(None, None, key=None)
            return
        except ValueError:  # Python cannot tell its signature
            return
        except TypeError:
            got = f"{name_of(bound)}{inspect.signature(bound)}"
    raise InputError(f"bound must be callable as bound(model, batch, key=key), got {got}.")


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """The user's values as they come back from config.toml."""
    for name, value in config.items():
        try:
            msgspec.toml.encode({name: value})
        except TypeError:
            raise InputError(
                f"config must hold plain values (text, numbers, booleans, lists and dictionaries of them), got "
                f"{name}={value!r:.60}."
            ) from None
    return msgspec.toml.decode(msgspec.toml.encode(dict(config)))


OF_DATA = {name for name, option in OPTIONS.items() if option.section == "data"}


def dataset_setting(dataset: str) -> str:
    """A known name as it is, a path made absolute: a run finds its data again from anywhere."""
    path = os.path.expanduser(dataset)
    return dataset if dataset in (*KNOWN, TIMIT) or not os.path.exists(path) else os.path.abspath(path)


def _untrained(own: Any, settings: Settings, dataset: Dataset) -> SequenceModel:
    """The model that training starts from."""
    if own is None:
        check_memory(settings, dataset)
        model = build_model(settings, dataset, key=model_key(settings))
    else:
        model = own if isinstance(own, SequenceModel) else made_model(own, dataset)
        model = with_twist(model, settings, dataset, key=model_key(settings))
    source = settings.training.init_from
    if not source:
        return model
    files = RunDirectory(source)
    arrays = {name.removeprefix(MODEL): a for name, a in files.read_best()[0].items() if name.startswith(MODEL)}
    return with_parameters(model, serialization.from_arrays(arrays, trainable(model), files.best))


MODEL = "['model']"
"""What the names of a model's arrays begin with in a checkpoint."""


def _with_digests(
    settings: Settings,
    model: SequenceModel,
    rule: Optimizer | None,
    updates: Sequence[Update],
    validation: Bound | None,
) -> Settings:
    """The settings with what tells objects that they only name from others."""
    if isinstance(settings.model, OwnModel):
        chosen = msgspec.structs.replace(settings.model, model_digest=digest(model))
        settings = msgspec.structs.replace(settings, model=chosen)
    if isinstance(settings.optimizer, OwnOptimizer) and rule is not None:
        state = jax.eval_shape(rule.rule.init, trainable(model))
        chosen = msgspec.structs.replace(settings.optimizer, optimizer_digest=digest(state))
        settings = msgspec.structs.replace(settings, optimizer=chosen)
    chooses = {} if validation is None else {"name": name_of(validation), "digest": digest(validation)}
    named = {update.name: _digest_of_update(update, trainable(model)) for update in updates}
    return msgspec.structs.replace(settings, updates=named, validation=chooses)


def _digest_of_update(update: Update, parameters: PyTree) -> str:
    """Of what it trains, the structure of its optimizer's state, and the names of its functions."""
    state = jax.eval_shape(update.optimizer.init, parameters)
    return digest((update.mask(parameters), state, update.loss, update.data, update.repeats))
