"""Builds the pages of `docs/` and the README as HTML, one file each and no network: `python docs/build.py [OUTPUT]`."""

import re
import sys
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt  # what `rich` renders Markdown with

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PAGES = [
    ROOT / "README.md",
    *sorted(DOCS.glob("*.md")),
    ROOT / "src/fivo/data/BACH.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
]
STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 1rem; }
nav a { margin-right: 1rem; }
pre { overflow-x: auto; padding: .75rem; background: color-mix(in srgb, currentColor 8%, transparent); }
code { font-size: .9em; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid; text-align: left; }
"""


def build(out: Path) -> list[Path]:
    """Write a page of HTML for every page of Markdown; the README becomes index.html."""
    pages = {page: page_name(page) for page in PAGES}
    navigation = "".join(f'<a href="{name}">{title(page)}</a>' for page, name in pages.items())
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for page, name in pages.items():
        body = MarkdownIt("commonmark").enable("table").render(page.read_text())
        html = (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title(page)}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
            f"<body><nav>{navigation}</nav>\n{links_to_pages(body)}</body></html>\n"
        )
        (out / name).write_text(html)
        written.append(out / name)
    return written


def title(page: Path) -> str:
    """A page's first heading."""
    return escape(page.read_text().partition("\n")[0].removeprefix("# "))


def page_name(page: Path) -> str:
    """The file that a page of Markdown becomes."""
    return "index.html" if page.stem == "README" else f"{page.stem.lower()}.html"


def links_to_pages(body: str) -> str:
    """Links between pages of Markdown lead to the pages of HTML."""
    return re.sub(r'href="(?!https?:)([^"#]+\.md)', lambda link: f'href="{page_name(Path(link[1]))}', body)


if __name__ == "__main__":
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"
    print(f"{len(build(output))} pages in {output}; begin with {output / 'index.html'}")
