"""The command line: parse, call, print. Heavy imports wait until a command runs."""

import os
import re
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from fivo import __version__
from fivo.errors import InputError

app = App(
    name="fivo",
    help="Filtering variational objectives: train, evaluate and sample sequential latent variable models.",
    version=__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
app.command("fivo.cli.train:train", name="train", help="Train a model, or continue a run.")
app.command("fivo.cli.evaluate:evaluate", name="evaluate", help="Bounds of a trained run on any split.")
app.command("fivo.cli.diagnose:diagnose", name="diagnose", help="How tight a run's bound is, and why.")
app.command("fivo.cli.sample:sample", name="sample", help="New music or speech from a trained run.")
app.command("fivo.cli.check:check", name="check", help="Verify the files of a run.")
app.command("fivo.cli.sweep:sweep", name="sweep", help="Make a table or figure of the paper.")
app.command("fivo.cli.report:report", name="report", help="One page, or tables, from sweeps and runs.")
app.command("fivo.cli.data:app", name="data", help="List, check and fetch datasets.")
app.command(
    "fivo.cli.compare_gradients:compare_gradients",
    name="compare-gradients",
    help="Training curves with and without the resampling term of the gradient.",
)
app.command("fivo.cli.demo:demo", name="demo", help="ELBO, IWAE and FIVO on Bach's chorales in minutes.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a user's mistake is one sentence on standard error and exit code 2."""
    try:
        app(sys.argv[1:] if arguments is None else arguments, exit_on_error=False, print_error=False)
    except InputError as error:
        print(f"fivo: {error}", file=sys.stderr)
        sys.exit(2)
    except CycloptsError as error:
        command = " ".join(["fivo", *(error.command_chain or ())])
        print(f"fivo: {one_sentence(str(error))}; see `{command} --help`.", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("fivo: stopped; the same command goes on from the last checkpoint.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone; without this, Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def one_sentence(text: str) -> str:
    """Several sentences joined, without the last period."""
    joined = re.sub(r"[.?]\s+([A-Z])", lambda match: f"; {match[1].lower()}", " ".join(text.split()))
    return joined.rstrip(".?")
