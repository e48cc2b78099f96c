"""`make docs`: every page becomes HTML, and the links between pages hold there too."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_pages_are_built_and_linked(tmp_path):
    written = runpy.run_path(str(ROOT / "docs" / "build.py"))["build"](tmp_path)
    names = {page.name for page in written}
    assert {"index.html", *(f"{page.stem}.html" for page in (ROOT / "docs").glob("*.md"))} <= names
    for page in written:
        html = page.read_text()
        assert "<h1>" in html
        assert set(re.findall(r'href="(?!https?:)([^"#]+)', html)) <= names
