"""The picture of the rooms in `docs/architecture.md`: `python docs/tables/rooms.py` writes `docs/images/rooms.svg`."""

from html import escape
from pathlib import Path

OUT = Path(__file__).parents[1] / "images" / "rooms.svg"
LIBRARY, APPLICATION, SHARED, INK, QUIET = "#dbe7fb", "#fbe8d3", "#ececf1", "#20242c", "#5b6270"
ROWS = [
    (
        "library",
        LIBRARY,
        [
            ["batch", "weights", "_fuse"],
            ["distributions", "resampling"],
            ["models"],
            ["smc"],
            ["gradients"],
            ["bounds"],
        ],
    ),
    (
        "application",
        APPLICATION,
        [["data", "settings"], ["runs"], ["training", "inference"], ["_run"], ["experiments", "report"], ["cli"]],
    ),
]
NOTES = {
    "batch": "padded sequences",
    "weights": "log-space sums, ESS",
    "_fuse": "the loop compiler",
    "distributions": "with missing entries",
    "resampling": "schemes, criteria",
    "models": "the contract, VRNN, ...",
    "smc": "the particle filter",
    "gradients": "what is differentiated",
    "bounds": "ELBO, IWAE, FIVO, ...",
    "data": "sources, Dataset",
    "settings": "options as data",
    "runs": "directories, records",
    "training": "steps, checkpoints",
    "inference": "evaluate, forecast, ...",
    "_run": "fit, Run, open_run",
    "experiments": "sweeps, tables",
    "report": "pages, plots, sound",
    "cli": "the command fivo",
}
WIDTH, HEIGHT, GAP, LEFT, TOP = 142, 42, 26, 20, 40


def box(x: float, y: float, name: str, colour: str) -> str:
    """A room."""
    middle = x + WIDTH / 2
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"'
        f' fill="{colour}" stroke="{QUIET}" stroke-width=".6"/>'
        f'<text x="{middle}" y="{y + 18}" font-weight="600" fill="{INK}">{escape(name)}</text>'
        f'<text x="{middle}" y="{y + 33}" font-size="10.5" fill="{QUIET}">{escape(NOTES[name])}</text>'
    )


def arrow(x: float, y: float, end: float) -> str:
    """From one column to the next."""
    return f'<path d="M{x} {y} H{end}" stroke="{QUIET}" stroke-width="1.2" marker-end="url(#tip)"/>'


def picture() -> str:
    """The whole picture, as SVG."""
    parts, y = [], TOP
    for label, colour, columns in ROWS:
        deepest = max(len(column) for column in columns)
        band = deepest * (HEIGHT + 10) + 4
        parts.append(f'<text x="{LEFT}" y="{y - 12}" text-anchor="start" font-size="13" fill="{QUIET}">{label}</text>')
        for place, column in enumerate(columns):
            x = LEFT + place * (WIDTH + GAP)
            for row, name in enumerate(column):
                parts.append(box(x, y + (band - len(column) * (HEIGHT + 10)) / 2 + row * (HEIGHT + 10), name, colour))
            if place:
                parts.append(arrow(x - GAP + 3, y + band / 2 - 5, x - 5))
        y += band + 66
    width = LEFT * 2 + 6 * WIDTH + 5 * GAP
    shared = (
        f'<rect x="{LEFT}" y="{y - 34}" width="{width - 2 * LEFT}" height="30" rx="6" fill="{SHARED}"/>'
        f'<text x="{width / 2}" y="{y - 14}" fill="{INK}">errors · files · serialization: below both layers; '
        "arrows lead from what is imported to what imports it, and from data to results</text>"
    )
    down = (
        f'<path d="M{width - LEFT - WIDTH / 2} {TOP + 102} V{TOP + 170} H{LEFT + 2.5 * WIDTH + 2 * GAP} V{TOP + 212}" '
    )
    down += f'fill="none" stroke="{QUIET}" stroke-width="1.2" marker-end="url(#tip)"/>'
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{QUIET}"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 8}" font-size="12.5" '
        'font-family="system-ui, sans-serif" text-anchor="middle">'
        f"<defs>{tip}</defs>{''.join(parts)}{down}{shared}</svg>\n"
    )


if __name__ == "__main__":
    OUT.write_text(picture())
