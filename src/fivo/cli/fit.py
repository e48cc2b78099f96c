"""`fivo fit`, whose options are the settings of `fivo.settings`."""

from dataclasses import field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts import Parameter

from fivo.cli.machines import Machines
from fivo.settings import OPTIONS, Option

if TYPE_CHECKING:
    from fivo.training import Plan

NAMED = {
    "model": "The model: vrnn, srnn, dmm, linear-gaussian, auto (the best of small ones, for tables), or "
    "package.module:function, which makes one of the dataset.",
    "bound": "The training objective: elbo, iwae, fivo, sixo, exact, or package.module:object for one of your own.",
}
"""Options that also take the name of an object to import."""


def _field(option: Option) -> tuple[str, Any, Any]:
    """An option of the command: unset unless given, with the default in its help."""
    kind = str if option.name in NAMED else _without_limits(option.type)
    text = NAMED.get(option.name, option.help)
    default = "" if option.default is False or option.default == "" else f" [{_shown(option.default)}]"
    return option.name, Annotated[kind | None, Parameter(help=text + default)], field(default=None)


def _without_limits(annotation: Any) -> Any:
    """The type alone: limits are checked with all settings together, in one place."""
    return get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation


def _shown(default: Any) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


Options = make_dataclass("Options", [_field(option) for option in OPTIONS.values()], kw_only=True)
Options.__module__ = __name__  # the parser takes classes of the standard library for simple values


def fit(
    data: str | None = None,
    /,
    *,
    out: Path,
    options: Annotated[Options | None, Parameter(name="*")] = None,  # pyright: ignore[reportInvalidTypeForm]
    recipe: str | None = None,
    config: Path | None = None,
    data_dir: Path | None = None,
    override: Annotated[bool, Parameter(negative=())] = False,
    budget: str | None = None,
    horizon: int | None = None,
    machines: Annotated[Machines | None, Parameter(name="*")] = None,
) -> None:
    """Train a model. Run the same command again to resume an interrupted run; it ends in the same bits.

    Parameters
    ----------
    data
        The dataset: a name (see fivo data list), a path, or package.module:function, which makes one. [bach]
    out
        The run's directory.
    recipe
        Settings of the optimizer by name: paper (the defaults) or tuned; any other option takes precedence.
    config
        A TOML file with any of these settings; options on the command line take precedence.
    data_dir
        Where to look for datasets first.
    override
        Resume a run with changed settings, for example after its loss became NaN.
    budget
        With --model auto: time for training all candidates together, such as 90s or 1h. [5min]
    horizon
        With --model auto: rows of the forecasts that candidates are compared by. [a season, 8, or as many as fit]
    """
    given = {name: value for name in OPTIONS if (value := getattr(options, name, None)) is not None}

    if recipe is not None:
        given["recipe"] = recipe

    from fivo._terminal.progress import summary
    from fivo.cli.training import train_with_progress
    from fivo.errors import InputError

    mesh = Machines().mesh() if machines is None else machines.mesh()
    if given.get("model") == "auto":
        if mesh is not None:
            raise InputError("--model auto must run as one process on one device; leave --devices and the like out.")
        from fivo.cli.auto import fit_best

        settings = written_settings(data, {name: value for name, value in given.items() if name != "model"}, config)
        fit_best(settings, out, budget=budget, horizon=horizon, data_dir=data_dir)
        return
    for name, value in (("budget", budget), ("horizon", horizon)):
        if value is not None:
            raise InputError(f"--{name} is for --model auto, got {value!r:.40} without it; leave it out.")
    plan = plan_of(data, given, config=config, data_dir=data_dir)
    run = train_with_progress(plan, out, override=override, mesh=mesh)

    from fivo.devices import leads

    if leads():
        summary(out, run.result)


def written_settings(data: str | None, given: dict[str, Any], config: Path | None) -> dict[str, Any]:
    """What a file says, overruled by the options of a command."""
    from fivo.errors import InputError
    from fivo.settings import read_settings

    if data is not None and "dataset" in given:
        raise InputError(f"the dataset was given twice, as {data!r:.60} and as --dataset {given['dataset']!r:.60}.")
    return {**(read_settings(config) if config else {}), **given, **({} if data is None else {"dataset": data})}


def plan_of(
    data: str | None, given: dict[str, Any], *, config: Path | None = None, data_dir: Path | None = None
) -> "Plan":
    """The plan of a command: what a file says, overruled by its options."""
    from fivo._run import prepare_named
    from fivo.caching import compilation_cache

    settings = written_settings(data, given, config)
    compilation_cache()
    return prepare_named(settings, data_dir)
