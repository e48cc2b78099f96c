"""SVG text: elements, escaping, and how wide a text will be."""

import re
import unicodedata
from html import escape

from fivo.report.style import STYLE

# Characters that XML 1.0 forbids, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_of(text: str) -> str:
    """`text` so that a reader sees it as it is, whatever it contains."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def element(name: str, *content: str, **attributes: str | int | float) -> str:
    """An element around `content`, which is SVG already; empty attributes are left out.

    `class_` stands for `class`, and `_` in other names for `-`.
    """
    written = ""
    for key, value in attributes.items():
        text = value if isinstance(value, str) else number(value)
        if text:
            written += f' {key.rstrip("_").replace("_", "-")}="{text_of(text)}"'
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def document(title: str, width: float, height: float, *content: str) -> bytes:
    """A whole file of SVG: `content` on paper, in the style of all charts."""
    whole = element(
        "svg",
        element("title", text_of(title)),
        element("style", STYLE),
        element("rect", class_="paper", width=width, height=height),
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        class_="fivo-chart",
        role="img",
    )
    return whole.encode() + b"\n"


def number(value: int | float) -> str:
    """A coordinate with a tenth of a pixel, which no eye can tell from more."""
    return f"{value:.1f}".removesuffix(".0")


def text_width(text: str, size: int) -> float:
    """About how many pixels wide `text` is; rather too wide than too narrow, since the reader's font is unknown."""
    return size * sum((1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in text), 0.0)


def shortened(text: str, size: int, width: float) -> str:
    """`text`, cut with an ellipsis where it would be wider than `width`."""
    if text_width(text, size) <= width:
        return text
    kept = len(text)
    while kept > 0 and text_width(text[:kept] + "…", size) > width:
        kept -= 1
    return text[:kept] + "…"
