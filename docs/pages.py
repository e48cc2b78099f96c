"""What mkdocs does not do by itself: pages kept at the root, the reference from the public lists, and notebooks.

mkdocs calls the functions `on_*` (mkdocs.yml, `hooks`). Names and docstrings are read from the package's source; only
its command line is imported, which needs no JAX.
"""

import ast
import json
import re
import sys
from pathlib import Path, PurePosixPath
from posixpath import relpath
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fivo"
KEPT_ELSEWHERE = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "bach.md": "src/fivo/data/BACH.md",
}
"""Pages of the site whose text is outside of `docs/`."""
INTERNAL = {"caching", "cli", "constants", "extras", "files", "memory"}
"""Modules without an underscore that users never import."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
FIGURE = re.compile(r"figures/[\w-]+\.svg")


# ---- pages -----------------------------------------------------------------------------------------------------------


def moved_links(text: str, origin: str, page: str) -> str:
    """Links of a file of the repository, as they must be on the page of the site that shows it.

    What is not on the site, such as the licence, is named without a link.
    """
    shown_at = {source: target for target, source in KEPT_ELSEWHERE.items()}

    def moved(link: re.Match) -> str:
        mark, label, target, anchor = link.groups(default="")
        target = (PurePosixPath(origin).parent / target).as_posix()
        resolved = relpath((ROOT / target).resolve(), ROOT.resolve())
        if resolved in shown_at:
            place = shown_at[resolved]
        elif resolved.startswith("docs/"):
            place = resolved.removeprefix("docs/")
        else:
            return label if (ROOT / resolved).exists() else link[0]
        return f"{mark}[{label}]({relpath(place, PurePosixPath(page).parent)}{anchor})"

    return LINK.sub(moved, text)


def on_config(config: Any) -> Any:
    """The pages of the reference stand in the navigation by themselves."""
    pages = [page for page in reference() if page != "reference/index.md"]
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] = ["reference/index.md", "reference/commands.md", *pages]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add every page that has no file of its own in `docs/`."""
    from mkdocs.exceptions import PluginError
    from mkdocs.structure.files import File

    def add(page: str, content: str) -> None:
        files.append(File.generated(config, page, content=content))

    for page, origin in KEPT_ELSEWHERE.items():
        add(page, (ROOT / origin).read_text())
    for page, content in reference().items():
        add(page, content)
    add("reference/commands.md", commands())
    if missing := undocumented():
        raise PluginError(f"public names without a docstring: {', '.join(missing)}")
    for page in sorted((ROOT / "docs" / "learn").glob("*.md")):
        add(f"learn/{page.stem}.ipynb", json.dumps(notebook(page.read_text(), page.parent), indent=1))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links lead to pages of the site, and a tutorial to its notebook."""
    uri = page.file.src_uri
    markdown = moved_links(markdown, KEPT_ELSEWHERE.get(uri, f"docs/{uri}"), uri)
    if uri.startswith("learn/"):
        name = PurePosixPath(uri).with_suffix(".ipynb").name
        heading, _, rest = markdown.partition("\n")
        markdown = f"{heading}\n\n[This page as a notebook]({name}){{ download }}\n{rest}"
    return markdown


# ---- reference -------------------------------------------------------------------------------------------------------


def public_lists() -> dict[str, list[str]]:
    """The names that every public room of the package lists in `__all__`, by the room's dotted name."""
    lists = {}
    for path in [SOURCE / "__init__.py", *sorted(SOURCE.glob("*.py")), *sorted(SOURCE.glob("*/__init__.py"))]:
        room = "" if path.parent == SOURCE and path.stem == "__init__" else path.stem
        room = path.parent.name if path.parent != SOURCE else room
        if not room.startswith("_") and room not in INTERNAL:
            lists["fivo." + room if room else "fivo"] = explicit_list(path)
    return lists


def explicit_list(path: Path) -> list[str]:
    """What a module lists in `__all__`."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    raise ValueError(f"{path.relative_to(ROOT)} has no __all__, so nobody can tell which of its names are public.")


def reference() -> dict[str, str]:
    """A page for each public room, and one that lists them."""
    lists = public_lists()
    rooms = [room for room in lists if room != "fivo"]
    pages = {}
    overview = [
        "# Reference\n",
        "Every public name, by the package that it is imported from.\n",
        "| package | |\n|---|---|",
    ]
    for room in ["fivo", *rooms]:
        tree = ast.parse(module_path(room).read_text())
        summary = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
        overview.append(f"| [`{room}`]({room}.md) | {summary} |")
        pages[f"reference/{room}.md"] = room_page(room, lists, ast.get_docstring(tree) or "")
    return {"reference/index.md": "\n".join(overview) + "\n", **pages}


def commands() -> str:
    """The help of every command, as a page."""
    sys.path.insert(0, str(SOURCE.parent))
    from fivo.cli.commands import app

    text = app.generate_docs(output_format="markdown")
    introduction, _, rest = text.partition("## Table of Contents")
    about = introduction.strip().rpartition("\n\n")[2]
    details = rest[rest.index("## fivo ") :].replace("```console", "```")
    return f"# Commands\n\n{about} The same texts are shown by `fivo COMMAND --help`.\n\n{details}"


def undocumented() -> list[str]:
    """Public names that say nothing about themselves."""
    import griffe

    package = griffe.load("fivo", search_paths=[str(SOURCE.parent)], resolve_aliases=True)
    names = [f"{room}.{name}" for room, listed in public_lists().items() for name in listed]
    return [name for name in names if not package[name.removeprefix("fivo.")].docstring]


def module_path(room: str) -> Path:
    """The file of a room."""
    place = SOURCE / room.removeprefix("fivo").removeprefix(".").replace(".", "/")
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def room_page(room: str, lists: dict[str, list[str]], docstring: str) -> str:
    """The page of one room: what it says of itself, and an entry for each of its names."""
    entries = []
    for name in lists[room]:
        if f"{room}.{name}" in lists:
            continue  # a room has its own page
        entries.append(f"::: {room}.{name}\n")
    return "\n".join([f"# {room}\n", docstring + "\n", *entries])


# ---- notebooks -------------------------------------------------------------------------------------------------------


def notebook(text: str, folder: Path) -> dict[str, Any]:
    """A page as a Jupyter notebook, with the outputs that it states and the figures that its code writes."""
    cells: list[dict[str, Any]] = []
    position = 0
    for block in BLOCK.finditer(text):
        kind, content = block[1], block[2]
        before = text[position : block.start()]
        if kind == "text" and cells and cells[-1]["cell_type"] == "code" and not before.strip():
            cells[-1]["outputs"].insert(0, {"output_type": "stream", "name": "stdout", "text": lines(content)})
            position = block.end()
        elif kind == "python" and "<!-- no-test -->" not in before[-20:]:
            add_text(cells, before)
            cells.append(code_cell(len(cells), content, folder))
            position = block.end()
    add_text(cells, text[position:])
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def add_text(cells: list[dict[str, Any]], text: str) -> None:
    """A cell of Markdown, without the figures that code cells show by themselves."""
    text = re.sub(r"!\[[^]]*\]\(figures/[^)]*\)\n?", "", text).strip("\n")
    if text.strip():
        cells.append({"cell_type": "markdown", "id": f"cell{len(cells)}", "metadata": {}, "source": lines(text)})


def code_cell(number: int, code: str, folder: Path) -> dict[str, Any]:
    """A cell of code, which also shows the figures that it writes."""
    outputs = []
    for figure in dict.fromkeys(FIGURE.findall(code)):
        code += f'\nfrom IPython.display import SVG, display\n\ndisplay(SVG("{figure}"))\n'
        data = {"image/svg+xml": lines((folder / figure).read_text())}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    cell = {"cell_type": "code", "id": f"cell{number}", "metadata": {}, "execution_count": None}
    return {**cell, "source": lines(code.strip("\n")), "outputs": outputs}


def lines(text: str) -> list[str]:
    """A text as notebooks keep it."""
    return text.splitlines(keepends=True)
