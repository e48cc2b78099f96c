"""`python -m fivo` is the `fivo` command."""

from fivo.cli import main

if __name__ == "__main__":
    main()
