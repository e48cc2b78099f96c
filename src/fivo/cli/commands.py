"""The commands and how each of them may end."""

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from fivo import __version__
from fivo._terminal.output import complain
from fivo.cli import interrupts
from fivo.cli.mistakes import sentence_of
from fivo.errors import InputError

MISTAKE = 2
LOST = 3
"""Exit code of a process whose fellows have ended."""

app = App(
    name="fivo",
    help="Filtering variational objectives: train, evaluate and sample sequential latent variable models.",
    version=__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
app.command(
    "fivo.cli.fit:fit",
    name=("fit", "train"),
    help="Train a model, or resume a run.",
    help_format="plaintext",  # rendering as Markdown takes as long as all the rest
)
app.command("fivo.cli.evaluate:evaluate", name="evaluate", help="Compute bounds of a trained run on any split.")
app.command("fivo.cli.diagnose:diagnose", name="diagnose", help="Show how tight a run's bound is, and why.")
app.command("fivo.cli.sample:sample", name="sample", help="Sample new music or speech from a trained run.")
for name, text in {
    "score": "Compute the log-likelihood of every row of a table.",
    "filter": "Give latent states and one-step predictions for every row of a table.",
    "smooth": "Give latent states for every row of a table, given all its rows.",
    "impute": "Fill the missing cells of a table.",
    "forecast": "Forecast the rows that follow a table.",
    "anomaly": "Find strange rows and series of a table.",
}.items():
    app.command(f"fivo.cli.rows:{name}", name=name, help=text)
app.command("fivo.cli.backtest:backtest", name="backtest", help="Score forecasts of held-out rows against baselines.")
app.command("fivo.cli.export:export", name="export", help="Write a run's model as programs for JAX alone.")
app.command("fivo.cli.check:check", name="check", help="Verify the files of a run.")
app.command("fivo.cli.sweep:sweep", name="sweep", help="Reproduce a table or figure of the paper.")
app.command("fivo.cli.report:report", name="report", help="Write a page, or tables, from sweeps and runs.")
app.command("fivo.cli.data:app", name="data", help="List, check and fetch datasets.")
app.command(
    "fivo.cli.compare_gradients:compare_gradients",
    name="compare-gradients",
    help="Compare training curves with and without the resampling term of the gradient.",
)
app.command("fivo.cli.demo:demo", name="demo", help="Show the main job in minutes: `demo` on music, `demo tables`.")
app.command(
    "fivo.cli.completion:install_completion", name="--install-completion", help="Install tab completion for your shell."
)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run a command; whatever ends it early is at most one sentence on standard error."""
    try:
        app(sys.argv[1:] if arguments is None else arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except InputError as error:
        _refuse(str(error))
    except CycloptsError as error:
        _refuse(sentence_of(error, app))
    except interrupts.EndRequested as stop:
        interrupts.leave(stop.number)
    except KeyboardInterrupt:  # only if nothing watches for signals, as `fivo.__main__` does
        complain("Interrupted.")
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone
        sys.exit(1)
    except OSError as error:
        if error.filename is not None:
            raise
        _refuse(f"the output cannot be written ({error.strerror or error}); free some space or send it elsewhere.")
    except Exception as error:
        if _lost_process(error):
            complain("another process has ended or cannot be reached; run the same command on every host to resume.")
            sys.exit(LOST)
        if not _out_of_memory(error):
            raise
        _refuse("there is not enough memory; use fewer --particles, a smaller --batch-size, or a smaller model.")


def _refuse(sentence: str) -> None:
    complain(sentence)
    sys.exit(MISTAKE)


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or (
        type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError") and "RESOURCE_EXHAUSTED" in str(error)
    )


def _lost_process(error: Exception) -> bool:
    if "fivo.devices.processes" not in sys.modules:
        return False
    from fivo.devices.processes import is_lost

    return is_lost(error)
