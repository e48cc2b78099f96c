"""Small damages to a valid file, drawn with a fixed seed."""

import re
from collections.abc import Callable, Sequence
from random import Random

HOSTILE_NUMBERS = (0, 1, 2, 7, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**28 - 1, 2**31 - 1, 2**31, 2**32 - 1)
HOSTILE_LARGE = (2**36 - 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
HOSTILE_TEXTS = (
    *(b"0", b"-1", b"1e999", b"-1e999", b"NaN", b"nan", b"inf", b"Infinity", b"1.5", b"", b"9" * 20, b"9" * 5_000),
    *(
        b"4294967296",
        b"18446744073709551616",
        b"0x10",
        b"1_000",
        b"\xd9\xa3",
        b"null",
        b"true",
        b"'",
        b'"',
        b"[" * 2_000,
    ),
)
HOSTILE_BYTES = (
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\n",
    b"\r\n\r\n",
    b"%s%n",
    b"../",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
)


def flip_bits(content: bytearray, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 8))):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def set_bytes(content: bytearray, random: Random) -> None:
    for _ in range(random.choice((1, 1, 3))):
        content[random.randrange(len(content))] = random.randrange(256)


def truncate(content: bytearray, random: Random) -> None:
    del content[random.randrange(len(content)) :]


def delete(content: bytearray, random: Random) -> None:
    begin = random.randrange(len(content))
    del content[begin : begin + random.choice((1, 2, 4, 8, 64))]


def insert(content: bytearray, random: Random) -> None:
    begin = random.randrange(len(content))
    content[begin:begin] = random.choice(HOSTILE_BYTES) * random.choice((1, 1, 2, 100, 5_000))


def set_length(content: bytearray, random: Random) -> None:
    """Overwrite what may be a number of 1 to 8 bytes, in either order."""
    width = random.choice((1, 2, 4, 4, 8))
    value = random.choice(HOSTILE_NUMBERS + HOSTILE_LARGE + (len(content), len(content) + 1, -len(content)))
    begin = random.randrange(max(1, len(content) - width + 1))
    content[begin : begin + width] = (value % 256**width).to_bytes(width, random.choice(("little", "big")))


def set_text(content: bytearray, random: Random) -> None:
    """Overwrite a number that is written in digits."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?", content))
    if not found:
        return set_length(content, random)
    match = random.choice(found)
    content[match.start() : match.end()] = random.choice(HOSTILE_TEXTS)
    return None


def repeat(content: bytearray, random: Random) -> None:
    begin = random.randrange(len(content))
    piece = content[begin : begin + random.choice((1, 4, 16, 256))]
    content[begin:begin] = piece * random.choice((1, 2, 50))


MUTATIONS: tuple[Callable[[bytearray, Random], None], ...] = (
    *(flip_bits, set_bytes, set_length, set_length, set_text),
    *(truncate, delete, insert, repeat),
)


def mutate(seeds: Sequence[bytes], random: Random) -> bytes:
    """A seed with one to four damages; now and then the beginning of one seed before the end of another."""
    content = bytearray(random.choice(seeds))
    if random.random() < 0.1:
        other = random.choice(seeds)
        content = content[: random.randrange(len(content) + 1)] + other[random.randrange(len(other) + 1) :]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if content:
            random.choice(MUTATIONS)(content, random)
    return bytes(content)
