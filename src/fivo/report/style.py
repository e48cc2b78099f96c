"""How charts look: colours for bright and dark pages, and the sizes of text."""

# Told apart by readers with any of the three kinds of colour blindness, and three times as bright or dark as the paper;
# a test holds both.
LIGHT_COLOURS = ("#004EC3", "#E87500", "#39A06C", "#C773BA", "#6F3B00", "#342C37")
DARK_COLOURS = ("#3F87FF", "#F28A1C", "#3FC488", "#F0B2E6", "#FFF2A0", "#7C6F92")
LIGHT_PAPER, DARK_PAPER = "#FFFFFF", "#14171C"
NUM_COLOURS = len(LIGHT_COLOURS)

TITLE_SIZE = 15
TEXT_SIZE = 12


def _colours(paper: str, text: str, quiet: str, grid: str, lines: tuple[str, ...]) -> str:
    rules = [
        f".fivo-chart .paper{{fill:{paper}}}",
        f".fivo-chart text{{fill:{text}}}",
        f".fivo-chart .quiet{{fill:{quiet}}}",
        f".fivo-chart .grid{{stroke:{grid}}}",
        f".fivo-chart .axis{{stroke:{quiet}}}",
        f".fivo-chart .reference{{stroke:{quiet}}}",
        f".fivo-chart .mark{{stroke:{paper}}}",
    ]
    for index, colour in enumerate(lines):
        rules.append(f".fivo-chart .line{index}{{stroke:{colour}}}.fivo-chart .fill{index}{{fill:{colour}}}")
    return "".join(rules)


_LIGHT = _colours(LIGHT_PAPER, "#1C2128", "#5A6270", "#E4E7EC", LIGHT_COLOURS)
_DARK = _colours(DARK_PAPER, "#E8EAEE", "#A0A8B5", "#2B3039", DARK_COLOURS)

# Every rule names the class of the chart, so that nothing of it reaches a page that a chart is pasted into.
STYLE = (
    ".fivo-chart{max-width:100%;height:auto;"
    f"font:{TEXT_SIZE}px system-ui,'Segoe UI','Helvetica Neue',Arial,sans-serif}}"
    f".fivo-chart .title{{font-size:{TITLE_SIZE}px;font-weight:600}}"
    ".fivo-chart .grid,.fivo-chart .axis{fill:none;stroke-width:1;shape-rendering:crispEdges}"
    ".fivo-chart .reference{fill:none;stroke-width:1.5;stroke-dasharray:6 4}"
    ".fivo-chart .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    ".fivo-chart .band{fill-opacity:.18;stroke:none}"
    ".fivo-chart .mark{stroke-width:1}"
    ".fivo-chart .middle{text-anchor:middle}.fivo-chart .end{text-anchor:end}"
    f"{_LIGHT}@media(prefers-color-scheme:dark){{{_DARK}}}"
)
