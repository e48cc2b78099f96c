"""Every block of Python in the documentation runs and prints what its page says, and links lead somewhere."""

import os
import re
from pathlib import Path

import pytest

from docs.execute import blocks, close, differences, outputs, shown_figures

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("learn/*.md"))]
LARGEST_FIGURE = 100_000
"""Bytes of a figure that is committed."""


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page.read_text())], ids=lambda page: page.name)
def test_the_code_of_a_page_prints_what_the_page_says(page, tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    printed = outputs(page, tmp_path, environment)
    stated = blocks(page.read_text())
    wrong = [sentence for block, output in zip(stated, printed, strict=True) for sentence in differences(block, output)]
    assert wrong == []
    figures = shown_figures(page.read_text())
    assert [figure for figure in figures if not (tmp_path / figure).exists()] == []
    assert [figure for figure in figures if (page.parent / figure).stat().st_size > LARGEST_FIGURE] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Python-Markdown makes them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    broken = []
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)(?:#([^)]+))?\)", page.read_text()):
        place = page.parent / target if target else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(f"{target}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_every_page_is_in_the_navigation_of_the_site(page):
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert f"- {page.relative_to(DOCS)}\n" in navigation


PAGE = (
    "# A\n\n```python\nx = 1.5\nprint('x is', x)\n```\n{}\n<!-- no-test -->\n```python\ny = 2\n```\n\n```\nz = 3\n```\n"
)


def test_blocks_are_found_and_can_be_exempted():
    (block,) = blocks(PAGE.format(""))
    assert (block.code, block.line, block.stated) == ("x = 1.5\nprint('x is', x)\n", 3, "")


@pytest.mark.parametrize(
    ("stated", "agrees"),
    [
        ("```text\nx is 1.5\n```\n", True),
        ("\n```text\nx is 1.5\n```\n", True),
        ("```text\nx is 1.51\n```\n", True),
        ("```text\nx is 1.8\n```\n", False),
        ("```text\ny is 1.5\n```\n", False),
        ("```text\nx is 1.5 2.5\n```\n", False),
        ("", False),
    ],
)
def test_a_stated_output_is_compared_with_the_printed_one(tmp_path, stated, agrees):
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(stated))
    (printed,) = outputs(page, tmp_path)
    (block,) = blocks(page.read_text())
    assert (differences(block, printed) == []) is agrees


@pytest.mark.parametrize(
    ("stated", "printed", "agree"),
    [
        ("-158.67", "-158.66", True),
        ("-163.89", "-158.67", False),
        ("3", "4", False),
        ("1,000", "1000", True),
        ("0.05", "0.07", True),
        ("0.05", "0.08", False),
        ("1.0e-3", "1.1e-3", True),
    ],
)
def test_numbers_agree_to_one_percent_or_the_last_digit_stated(stated, printed, agree):
    assert close(stated, printed) is agree
