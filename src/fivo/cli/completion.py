"""`fivo --install-completion`: commands and options at a press of the tab key."""

from typing import Literal


def install_completion(*, shell: Literal["bash", "zsh", "fish", "powershell"] | None = None) -> None:
    """Install tab completion for a shell.

    Parameters
    ----------
    shell
        The shell. [the one that this command was started from]
    """
    from cyclopts.completion.detect import ShellDetectionError

    from fivo._terminal.output import say
    from fivo.cli.commands import app
    from fivo.errors import InputError

    try:
        place = app.install_completion(shell=shell)
    except ShellDetectionError:
        raise InputError(
            "the shell must be bash, zsh, fish or powershell, but it is not known which one this is; use "
            "`fivo --install-completion --shell bash`."
        ) from None
    except OSError as error:
        raise InputError(
            f"the completion script must be written to a file, but {str(error.filename)!r} cannot be "
            f"({error.strerror or error})."
        ) from None
    say(f"wrote {place}; completion works in every shell that is started from now on")
