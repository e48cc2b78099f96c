"""The site: built strictly where its environment is, with its reference, notebooks and links; else what makes it."""

import ast
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from docs.pages import ROOT, commands, module_path, moved_links, notebook, public_lists, reference

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
PAGE = """# A page

Some text.

```python
x = 1
print(x)
```

```text
1
```

```python
fivo.report.write_figure("figures/a.svg", figure)
```

![A](figures/a.svg)

```
fivo --help
```
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    if not MKDOCS.exists():
        pytest.skip("the site's environment is not there; `make docs` makes it")
    folder = tmp_path_factory.mktemp("site")
    command = [MKDOCS, "build", "--quiet", "--strict", "--site-dir", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_site_asks_the_network_for_nothing(site):
    """No script, style, image or frame of a page has an address of its own."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        loaded = re.findall(r'<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)="?([^"\s>]+)', page.read_text())
        assert [address for address in loaded if re.match(r"(https?:)?//", address)] == [], page
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(), style


def test_every_public_name_is_in_the_reference(site):
    for room, names in public_lists().items():
        html = (site / "reference" / f"{room}.html").read_text()
        rooms = {name for name in names if f"{room}.{name}" in public_lists()}
        missing = [name for name in names if name not in rooms and f"{name}</span>" not in html]
        assert missing == [], room


def test_search_finds_pages_and_names_without_a_server(site):
    index = (site / "search" / "search_index.js").read_text()
    assert "ParticleFilter" in index
    assert "Conditional SMC" in index


NOTE = """<script>addEventListener("load", () => setTimeout(() => {
  const names = performance.getEntriesByType("resource").map((entry) => entry.name);
  document.body.dataset.requests = names.join(" ");
}, 2000));</script></body>"""
"""Writes what the browser asked for into the page."""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is on the PATH")
def test_search_and_formulas_in_a_browser_without_a_network(site):
    page = site / "learn" / "ten-minutes.html"
    (page.parent / "noted.html").write_text(page.read_text().replace("</body>", NOTE))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    address = f"{(page.parent / 'noted.html').as_uri()}?q=ParticleFilter"
    seen = subprocess.run([*command, address], capture_output=True, text=True, check=True, timeout=120).stdout
    assert re.search(r"[1-9]\d* matching documents", seen)
    assert 'class="katex"' in seen
    asked = re.search(r'data-requests="([^"]*)"', seen)
    assert asked is not None
    assert [address for address in asked[1].split() if not address.startswith("file:")] == []


def test_the_reference_has_a_page_for_every_room():
    pages = reference()
    assert {"reference/index.md", "reference/fivo.md", "reference/fivo.bounds.md"} <= pages.keys()
    assert "::: fivo.bounds.FIVO" in pages["reference/fivo.bounds.md"]
    assert "::: fivo.bounds\n" not in pages["reference/fivo.md"], "a room has its own page"


def test_every_command_has_its_help_on_a_page():
    page = commands()
    assert page.startswith("# Commands\n")
    for name in ("fit", "evaluate", "forecast", "data check", "sweep"):
        assert f" fivo {name}\n" in page
    assert "--learning-rate" in page


def test_links_of_files_at_the_root_lead_to_pages_of_the_site():
    assert moved_links("[a](docs/data.md#batches)", "README.md", "index.md") == "[a](data.md#batches)"
    assert moved_links("[a](../README.md)", "docs/data.md", "data.md") == "[a](index.md)"
    assert moved_links("[a](../data.md)", "docs/learn/music.md", "learn/music.md") == "[a](../data.md)"
    assert moved_links("![a](docs/images/rooms.svg)", "README.md", "index.md") == "![a](images/rooms.svg)"
    assert moved_links("[a](LICENSE)", "README.md", "index.md") == "a", "not on the site"
    assert moved_links("[a](https://jax.dev)", "README.md", "index.md") == "[a](https://jax.dev)"


def test_a_page_becomes_a_notebook(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.svg").write_text("<svg/>")
    made = json.loads(json.dumps(notebook(PAGE, tmp_path)))
    kinds = [cell["cell_type"] for cell in made["cells"]]
    assert kinds == ["markdown", "code", "code", "markdown"]
    first, second = made["cells"][1:3]
    assert "".join(first["source"]) == "x = 1\nprint(x)"
    assert first["outputs"] == [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]
    assert second["outputs"][0]["data"] == {"image/svg+xml": ["<svg/>"]}
    assert "".join(made["cells"][3]["source"]) == "```\nfivo --help\n```"
    ast.parse("".join(second["source"]))


def test_every_room_has_an_explicit_public_list():
    """`public_lists` fails where one is missing."""
    for room, names in public_lists().items():
        assert names, room
        assert module_path(room).exists()
        assert len(set(names)) == len(names)
