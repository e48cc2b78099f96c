"""The `fivo` command, also as `python -m fivo`."""

from fivo.cli import main
from fivo.cli.pages import large_pages


def command() -> None:
    """Run the command of this process's arguments."""
    large_pages()
    main()


if __name__ == "__main__":
    command()
