"""The command line: parse, call, print. Heavy imports wait until a command runs."""

import sys

from cyclopts import App

from fivo import __version__
from fivo.errors import InputError

app = App(
    name="fivo",
    help="Filtering variational objectives: train, evaluate and sample sequential latent variable models.",
    version=__version__,
    result_action="return_value",
)
app.command("fivo.cli.train:train", name="train", help="Train a model, or continue a run.")
app.command("fivo.cli.evaluate:evaluate", name="evaluate", help="Bounds of a trained run on any split.")
app.command("fivo.cli.sample:sample", name="sample", help="New music from a trained run.")
app.command("fivo.cli.data:app", name="data", help="List, check and fetch datasets.")
app.command("fivo.cli.demo:demo", name="demo", help="ELBO, IWAE and FIVO on Bach's chorales in minutes.")


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"fivo: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("fivo: stopped; the same command goes on from the last checkpoint.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
