"""What an error message owes its reader."""

import re


def assert_one_sentence(error: BaseException | str, *contains: str) -> None:
    """One line, one sentence, ended as one, that names what was given or expected."""
    text = str(error)
    assert "\n" not in text, text
    assert text.endswith((".", "?")), text
    # A period inside a number, a name or brackets ends no sentence; one before a space and a capital does.
    assert not re.search(r"\.\s+[A-Z]", text), text
    for part in contains:
        assert part in text, f"{part!r} is not in {text!r}"
