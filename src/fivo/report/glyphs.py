"""The few letters that pictures without a font library need."""

import numpy as np
from numpy.typing import NDArray

SCALE = 2

_ALPHABET = "0123456789C"
# Seven rows of the eleven letters above, five dots wide.
_DOTS = """
.###. ..#.. .###. ####. ...#. ##### .###. ##### .###. .###. .###.
#...# .##.. #...# ....# ..##. #.... #.... ....# #...# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...# #....
#.#.# ..#.. ...#. .###. #..#. ....# ####. ..#.. .###. .#### #....
##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....# #....
#...# ..#.. .#... ....# ...#. #...# #...# .#... #...# ....# #...#
.###. .###. ##### ####. ...#. .###. .###. .#... .###. .###. .###.
"""
_ROWS = [row.split() for row in _DOTS.split("\n") if row]
_GLYPHS = {
    letter: np.array([[dot == "#" for dot in row[index]] for row in _ROWS]) for index, letter in enumerate(_ALPHABET)
}


def text_pixels(text: str) -> NDArray[np.bool_]:
    """Where `text`, of digits and the letter C, has ink: shape [height, width]."""
    columns = np.concatenate([np.pad(_GLYPHS[letter], ((0, 0), (0, 1))) for letter in text], axis=1)
    return np.kron(columns[:, :-1], np.ones((SCALE, SCALE), np.bool_))
