"""How charts look, on the page and in files."""

# Told apart by readers with any of the three kinds of colour blindness, and three times as bright or dark as the paper;
# a test holds both.
LIGHT_COLOURS = ("#004EC3", "#E87500", "#39A06C", "#C773BA", "#6F3B00", "#342C37")
DARK_COLOURS = ("#3F87FF", "#F28A1C", "#3FC488", "#F0B2E6", "#FFF2A0", "#7C6F92")
LIGHT_PAPER, DARK_PAPER = "#FFFFFF", "#14171C"
INK, QUIET, RULE = "#1C2128", "#5A6270", "#E4E7EC"
"""Text, axes and the grid of a file, which is always on bright paper."""

DASHES = ("-", "--", ":", "-.")
MARKS = ("o", "s", "^", "D", "v", "P")
"""Lines differ in more than colour."""
