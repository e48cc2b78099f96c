"""What the parser refuses, in one sentence each."""

import difflib
import re

from cyclopts import App, CycloptsError, MissingArgumentError, UnknownCommandError, UnusedCliTokensError


def sentence_of(error: CycloptsError, app: App) -> str:
    """What is wrong with a command line, and which help to read."""
    words = tuple(error.command_chain or ())
    command = " ".join(["fivo", *words])
    return f"{_problem(error, app, words, command)}; see `{command} --help`."


def _problem(error: CycloptsError, app: App, words: tuple[str, ...], command: str) -> str:
    given = [str(token) for token in getattr(error, "unused_tokens", None) or ()]
    if isinstance(error, UnknownCommandError) and given:
        parent = app
        for word in words:
            parent = parent[word]
        near, others = by_likeness(given[0], [name for name in parent if not name.startswith("-")])
        suggestion = f" (did you mean {near[0]!r}?)" if near else ""
        return f"{given[0]!r} is not a command{suggestion}; `{command}` knows {', '.join([*near, *others])}"
    if isinstance(error, UnusedCliTokensError) and given:
        return f"`{command}` does not take {', '.join(map(repr, given))}"
    if isinstance(error, MissingArgumentError) and error.argument is not None and not error.argument.tokens:
        return f"`{command}` needs {error.argument.name}"
    return one_sentence(str(error))


def by_likeness(word: str, names: list[str]) -> tuple[list[str], list[str]]:
    """The names that a word may mean, most likely first, and then all others in order."""
    begun = [name for name in names if word and name.startswith(word)]
    near = list(dict.fromkeys([*begun, *difflib.get_close_matches(word, names, n=len(names))]))
    return near, [name for name in names if name not in near]


def one_sentence(text: str) -> str:
    """Several sentences joined, without the last period."""
    joined = re.sub(r"[.?]\s+([A-Z])", lambda match: f"; {match[1].lower()}", " ".join(text.split()))
    return joined.rstrip(".?")
