"""Run the Python of a page block by block, and compare what it prints with what the page says it prints.

A block of `text` directly below a block of `python` is its output. Code may write figures, as `figures/NAME.svg`, that
the page shows. `python docs/execute.py PAGE...` writes outputs and figures anew.
"""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

CODE = re.compile(
    r"^(<!-- no-test -->\n+)?```python\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
RELATIVE = 0.01
"""How far a printed number may be from the stated one: other processors round differently, and filters amplify it."""


class Block(NamedTuple):
    """One block of a page: its code, where it begins, and what the page says that it prints."""

    code: str
    line: int
    stated: str
    span: tuple[int, int]


def blocks(text: str) -> list[Block]:
    """The blocks of a page that are run, in order."""
    found = []
    for match in CODE.finditer(text):
        if match[1] is None:
            line = text.count("\n", 0, match.start(2))
            found.append(Block(match[2], line, match[3] or "", match.span()))
    return found


def shown_figures(text: str) -> list[str]:
    """The figures of a page that its own code writes."""
    return re.findall(r"!\[[^]]*\]\((figures/[\w-]+\.svg)\)", text)


def outputs(page: Path, directory: Path, environment: dict[str, str] | None = None) -> list[str]:
    """What every block of a page prints, run in one process and one namespace, with warnings as errors."""
    command = [sys.executable, "-W", "error", __file__, "--run", str(page.resolve())]
    ran = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])


def differences(block: Block, printed: str) -> list[str]:
    """What differs between the output that a page states and the one that its code has, a sentence each."""
    stated_lines, printed_lines = block.stated.rstrip().splitlines(), printed.rstrip().splitlines()
    if len(stated_lines) != len(printed_lines):
        return [f"line {block.line}: states {len(stated_lines)} lines of output where {len(printed_lines)} are printed"]
    found = []
    for stated, line in zip(stated_lines, printed_lines, strict=True):
        same_words = " ".join(NUMBER.sub("#", stated).split()) == " ".join(NUMBER.sub("#", line).split())
        numbers = zip(NUMBER.findall(stated), NUMBER.findall(line), strict=False)
        if not same_words or not all(close(a, b) for a, b in numbers):
            found.append(f"line {block.line}: states {stated!r} where {line!r} is printed")
    return found


def close(stated: str, printed: str) -> bool:
    """Whether two numbers agree to 1 %, or to two units of the last digit that is stated; whole numbers are equal."""
    a, b = (float(number.replace(",", "")) for number in (stated, printed))
    if "." not in stated and "e" not in stated:
        return a == b
    decimals = len(stated.partition("e")[0].partition(".")[2])
    scale = 10.0 ** int(stated.partition("e")[2] or 0)
    return abs(a - b) <= max(RELATIVE * abs(a), 2.001 * scale * 10.0**-decimals)


def refresh(page: Path) -> None:
    """Write what the blocks of a page print below them."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as directory:
        printed = outputs(page, Path(directory))
        for figure in shown_figures(text):
            (page.parent / figure).parent.mkdir(exist_ok=True)
            shutil.copyfile(Path(directory, figure), page.parent / figure)
    for block, output in reversed(list(zip(blocks(text), printed, strict=True))):
        start, end = block.span
        code = text[start:end].partition("\n```\n")[0] + "\n```\n"
        shown = f"\n```text\n{output.rstrip()}\n```\n" if output.strip() else ""
        text = text[:start] + code + shown + text[end:]
    page.write_text(text)


def _run(page: Path) -> None:
    namespace: dict = {"__name__": "__main__"}
    found = []
    for block in blocks(page.read_text()):
        # Code stands on the line it has on the page, so that errors name it.
        program = compile("\n" * block.line + block.code, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(program, namespace)  # noqa: S102 - the project's own documentation
        found.append(output.getvalue())
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if sys.argv[1] == "--run":
        _run(Path(sys.argv[2]))
    else:
        for name in sys.argv[1:]:
            refresh(Path(name))
