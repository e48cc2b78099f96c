"""Every block of Python in the documentation runs, a page at a time, as a reader would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^(<!-- no-test -->\n+)?```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def code_of(page: Path) -> str:
    """The page's blocks as one program, each line where it stands on the page, so that errors name it."""
    lines = [""] * (page.read_text().count("\n") + 1)
    for match in BLOCK.finditer(page.read_text()):
        if match[1] is None:
            first = page.read_text().count("\n", 0, match.start(2))
            block = match[2].splitlines()
            lines[first : first + len(block)] = block
    return "\n".join(lines)


@pytest.mark.parametrize("page", [page for page in PAGES if code_of(page).strip()], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path):
    program = tmp_path / f"{page.stem}.py"
    program.write_text(code_of(page))
    command = [sys.executable, "-W", "error", program]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_blocks_are_found_and_can_be_exempted(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nx = 1\n```\n\n<!-- no-test -->\n```python\ny = 2\n```\n\n```\nz = 3\n```\n")
    assert code_of(page).split("\n")[3] == "x = 1"
    assert code_of(page).strip() == "x = 1"
