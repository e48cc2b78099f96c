"""Tables as Markdown, CSV, LaTeX and JSON, from the summaries that a sweep leaves."""

import csv
import io
import re
from typing import Any

import msgspec

from fivo.errors import InputError
from fivo.report.grid import Grid, arranged, heading, number_text, signed, spread_text
from fivo.runs import Summary, encode_record

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def as_markdown(*summaries: dict[str, Any]) -> str:
    """A table for each experiment: ours ± standard error, the spread over seeds, the paper's number, the difference.

    Args:
        summaries: Of experiments, as `read_sources` finds them.

    Returns:
        Markdown.
    """
    return "\n\n".join(_markdown(summary) for summary in summaries if summary["cells"]) + "\n"


def _markdown(summary: dict[str, Any]) -> str:
    grid = arranged(summary)
    lines = [f"**{_plain(summary['place'])}: {_plain(summary['title'])}** (ours ± s.e. / paper / difference)", ""]
    head = [*map(_plain, grid.row_keys), *(_plain(heading(column)) for column in grid.columns)]
    lines += [_bar(head), _bar(["---"] * len(head))]
    lines += [
        _bar([*(_plain(str(value)) for value in row), *(_cell_text(cell) for cell in cells)])
        for row, cells in zip(grid.rows, grid.cells, strict=True)
    ]
    return "\n".join([*lines, *(line for note in grid.notes for line in ("", note))])


def _bar(entries: list[str]) -> str:
    return f"| {' | '.join(entries)} |"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|#&!])", r"\\\1", " ".join(text.split()))


def _cell_text(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    unit = cell["unit"]
    ours = "–" if cell["ours"] is None else number_text(cell["ours"], unit, 1)
    error = "" if cell["standard_error"] is None else f" ± {number_text(cell['standard_error'], unit, 2)}"
    star = "\\*" if cell["note"] else ""
    paper = "–" if cell["published"] is None else number_text(cell["published"], unit)
    difference = "–" if cell["difference"] is None else signed(cell["difference"], unit)
    return f"{ours}{error}{star}{spread_text(cell)} / {paper} / {difference}"


def as_csv(*summaries: dict[str, Any]) -> str:
    """One line for each cell of all experiments.

    Args:
        summaries: Of experiments, as `read_sources` finds them.

    Returns:
        The text of a CSV file; cells that a spreadsheet would run as formulas are made harmless.
    """
    keys = list(dict.fromkeys(key for summary in summaries for cell in summary["cells"] for key in cell["keys"]))
    fields = ["published", "ours", "standard_error", "deviation", "difference", "runs_trained", "runs_planned"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = ["experiment", "place", "unit", *keys, *fields, "reported", "optimistic", "runs", "commit"]
    writer.writerow([_harmless(name) for name in header])
    for summary in summaries:
        for cell in summary["cells"]:
            chosen = cell["selected"]
            row = [summary["name"], summary["place"], summary["unit"]]
            row += [cell["keys"].get(key, "") for key in keys]
            row += ["" if cell.get(field) is None else cell[field] for field in fields]
            row += [" ".join(evidence[key] for evidence in chosen) for key in ("reported",)]
            row += [bool(cell["note"]), " ".join(evidence["run"] for evidence in chosen)]
            row += [" ".join(dict.fromkeys(str(evidence["commit"]) for evidence in chosen))]
            writer.writerow([_harmless(value) for value in row])
    return text.getvalue()


def _harmless(value: Any) -> Any:
    """Text on one line that a spreadsheet does not take for a formula; numbers as they are."""
    if not isinstance(value, str):
        return value
    # Some programs begin a new cell at any control character, also inside quotes.
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", value)
    formula = text.lstrip()[:1] in ("=", "+", "-", "@") and not NUMBER.fullmatch(text)
    return f"'{text}" if formula else text


def as_latex(*summaries: dict[str, Any]) -> str:
    """A `table` for each experiment, in the style of the paper (package booktabs).

    Args:
        summaries: Of experiments, as `read_sources` finds them.

    Returns:
        LaTeX.
    """
    return "\n\n".join(_latex(summary, arranged(summary)) for summary in summaries if summary["cells"]) + "\n"


def _latex(summary: dict[str, Any], grid: Grid) -> str:
    width = len(grid.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{@{{}}{'l' * len(grid.row_keys)}{'rrr' * width}@{{}}}}",
        r"\toprule",
        " & ".join(
            [""] * len(grid.row_keys)
            + [rf"\multicolumn{{3}}{{c}}{{{_tex(heading(column))}}}" for column in grid.columns]
        ).strip()
        + r" \\",
        " & ".join([*(_tex(key) for key in grid.row_keys), *["ours & paper & difference"] * width]) + r" \\",
        r"\midrule",
    ]
    for row, cells in zip(grid.rows, grid.cells, strict=True):
        entries = [_tex(str(value)) for value in row]
        for cell in cells:
            entries += _tex_cell(cell)
        lines.append(" & ".join(entries) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    caption = " ".join([f"{summary['place']}: {summary['title']}.", *grid.notes]).replace("\\*", "*")
    return "\n".join([*lines, rf"\caption{{{_tex(caption)}}}", r"\end{table}"])


def _tex_cell(cell: dict[str, Any] | None) -> list[str]:
    if cell is None:
        return ["", "", ""]
    unit = cell["unit"]
    ours = "--" if cell["ours"] is None else f"${number_text(cell['ours'], unit, 1)}"
    if cell["ours"] is not None:
        error = cell["standard_error"]
        ours += "" if error is None else rf" \pm {number_text(error, unit, 2)}"
        ours += "^{*}$" if cell["note"] else "$"
        ours += spread_text(cell)
    return [
        ours,
        "--" if cell["published"] is None else f"${number_text(cell['published'], unit)}$",
        "--" if cell["difference"] is None else f"${signed(cell['difference'], unit)}$",
    ]


def _tex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def as_json(*summaries: dict[str, Any]) -> str:
    """The summary of one experiment, which may have been joined from several.

    Args:
        summaries: Of experiments, as `read_sources` finds them.

    Returns:
        The text of a JSON file that `read_sources` reads.
    """
    if len(summaries) != 1:
        names = ", ".join(str(summary["name"]) for summary in summaries)
        raise InputError(
            f"JSON must hold one experiment, got {len(summaries)} ({names:.90}); give the files of one only."
        )
    return encode_record(msgspec.convert(summaries[0], Summary)).decode()
