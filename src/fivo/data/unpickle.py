"""A pickle machine that can build containers, integers and numpy integer scalars, and nothing else.

It never imports or calls anything a file names: the two callables the original music files mention
(`numpy.core.multiarray.scalar` and `numpy.dtype`) are marks on its stack that mean "decode an integer". An
opcode outside its short table ends the reading. Strings are read as Latin-1, which takes a byte a character: the
names that matter are ASCII.
"""

import struct
from typing import Any, Literal, NoReturn

from fivo.data.budget import INSTRUCTION_BYTES, STRING_BYTES, Budget
from fivo.errors import InputError

# What a file may name, and its mark.
_SCALAR = object()
_DTYPE = object()
_ADMITTED = {
    ("numpy.core.multiarray", "scalar"): _SCALAR,
    ("numpy._core.multiarray", "scalar"): _SCALAR,
    ("numpy", "dtype"): _DTYPE,
}
_INTEGER_CODES = frozenset(sign + width for sign in "iu" for width in "1248")

# BINGET kind, SHORT_BINSTRING of 8 bytes, TUPLE2, REDUCE, LONG_BINPUT index
_INT64_SCALAR = struct.Struct("<BBHqHBI")
_INT64_SCALAR_OPCODES = (0x68, 0x0855, 0x5286, 0x72)


class _IntegerType:
    """Stand-in for an integer `numpy.dtype`: width, sign and byte order."""

    __slots__ = ("is_little_int64", "order", "signed", "width")

    def __init__(self, code: str) -> None:
        self.width = int(code[1])
        self.signed = code[0] == "i"
        self.set_order("little")

    def set_order(self, order: Literal["little", "big"]) -> None:
        self.order = order
        self.is_little_int64 = (self.width, self.signed, order) == (8, True, "little")


class _Refusal(Exception):
    pass


def loads(data: bytes, budget: Budget) -> Any:
    """The lists, tuples, dicts, strings and integers of a pickle (protocol 2 or later)."""
    where = budget.where
    try:
        value, instructions = _run(data, budget.room // INSTRUCTION_BYTES)
    except _Refusal as refusal:
        raise InputError(f"{where} is not a pickle of note lists: {refusal}; nothing in it was executed.") from None
    except (IndexError, KeyError):  # ran past the end, below the stack, or recalled what was never stored
        raise InputError(f"{where} is damaged or cut short; get a fresh copy.") from None
    budget.spend(instructions * INSTRUCTION_BYTES)
    return value


def _refuse(reason: str) -> NoReturn:
    raise _Refusal(reason)


def _take(data: bytes, start: int, count: int) -> bytes:
    piece = data[start : start + count]
    if len(piece) < count:
        raise IndexError
    return piece


def _line(data: bytes, start: int) -> tuple[str, int]:
    end = data.find(b"\n", start)
    if end < 0:
        raise IndexError
    return data[start:end].decode("latin1"), end + 1


def _admit(module: Any, name: Any) -> object:
    if not (isinstance(module, str) and isinstance(name, str)):
        _refuse("it names something by other than strings")
    if (module, name) not in _ADMITTED:
        _refuse(f"it names {f'{module}.{name}'!r:.80}")
    return _ADMITTED[module, name]


def _call(function: Any, arguments: Any) -> Any:
    if type(arguments) is not tuple:
        _refuse("it calls with something other than a tuple")
    if function is _SCALAR:
        if len(arguments) != 2 or not isinstance(arguments[0], _IntegerType):
            _refuse("it holds a numpy scalar that is not an integer")
        kind, raw = arguments
        content = raw.encode("latin1", "replace") if isinstance(raw, str) else raw
        if not isinstance(content, bytes) or len(content) != kind.width:
            _refuse("it holds a numpy integer of the wrong width")
        return int.from_bytes(content, kind.order, signed=kind.signed)
    if function is _DTYPE:
        if not arguments or not isinstance(arguments[0], str) or arguments[0] not in _INTEGER_CODES:
            _refuse("it holds a numpy type that is not an integer")
        return _IntegerType(arguments[0])
    _refuse("it calls something that is not a function")


def _set_byte_order(target: Any, state: Any) -> None:
    if not isinstance(target, _IntegerType) or not isinstance(state, tuple) or len(state) < 2:
        _refuse("it sets the state of an object")
    if state[1] not in ("<", ">", "|", "="):
        _refuse("it holds a numpy type of unknown byte order")
    target.set_order("big" if state[1] == ">" else "little")


def _is_little_int64(kind: Any) -> bool:
    return type(kind) is _IntegerType and kind.is_little_int64


def _run(data: bytes, most: int) -> tuple[Any, int]:
    """What a pickle holds, and how many instructions it took; at most so many are followed."""
    if len(data) < 2 or data[0] != 0x80 or not 2 <= data[1] <= 5:
        _refuse("it does not start like a pickle of protocol 2 to 5")
    stack: list[Any] = []
    marks: list[list[Any]] = []
    memo: dict[int, Any] = {}
    push, pop = stack.append, stack.pop
    at, end = 2, len(data)
    # The branches are in order of frequency: the largest of the music files has ten million instructions.
    for count in range(most):
        op = data[at]
        at += 1
        if op == 0x68:  # BINGET
            recalled = memo[data[at]]
            at += 1
            # Nearly all of a music file is `scalar(int64, "8 bytes")`, memoised: take those five instructions at once.
            if recalled is _SCALAR and at + _INT64_SCALAR.size <= end:
                get, kind, string8, value, tuple2_reduce, put, index = _INT64_SCALAR.unpack_from(data, at)
                if (get, string8, tuple2_reduce, put) == _INT64_SCALAR_OPCODES and _is_little_int64(memo[kind]):
                    push(value)
                    memo[index] = value
                    at += _INT64_SCALAR.size
                    continue
            push(recalled)
        elif op == 0x72:  # LONG_BINPUT
            memo[int.from_bytes(data[at : at + 4], "little")] = stack[-1]
            at += 4
        elif op == 0x86:  # TUPLE2
            last = pop()
            push((pop(), last))
        elif op == 0x55 or op == 0x8C or op == 0x43:  # SHORT_BINSTRING, SHORT_BINUNICODE, SHORT_BINBYTES
            raw = _take(data, at + 1, data[at])
            push(raw if op == 0x43 else raw.decode("latin1"))
            at += 1 + len(raw)
        elif op == 0x52:  # REDUCE
            arguments = pop()
            push(_call(pop(), arguments))
        elif op == 0x28:  # MARK
            marks.append(stack)
            stack = []
            push, pop = stack.append, stack.pop
        elif op in _CLOSING:  # everything down to the last mark
            items = stack
            stack = marks.pop()
            push, pop = stack.append, stack.pop
            if op == 0x74:  # TUPLE
                push(tuple(items))
            elif op == 0x65:  # APPENDS
                _expect(stack[-1], list).extend(items)
            else:  # SETITEMS
                _set_items(stack[-1], items)
        elif op == 0x87:  # TUPLE3
            last, middle = pop(), pop()
            push((pop(), middle, last))
        elif op == 0x5D:  # EMPTY_LIST
            push([])
        elif op == 0x71:  # BINPUT
            memo[data[at]] = stack[-1]
            at += 1
        elif op == 0x94:  # MEMOIZE
            memo[len(memo)] = stack[-1]
        elif op == 0x29:  # EMPTY_TUPLE
            push(())
        elif op == 0x85:  # TUPLE1
            push((pop(),))
        elif op == 0x6A:  # LONG_BINGET
            push(memo[int.from_bytes(data[at : at + 4], "little")])
            at += 4
        elif op in _INTEGER_WIDTHS:  # BININT1, BININT2, BININT
            push(int.from_bytes(_take(data, at, _INTEGER_WIDTHS[op]), "little", signed=op == 0x4A))
            at += _INTEGER_WIDTHS[op]
        elif op == 0x8A:  # LONG1
            raw = _take(data, at + 1, data[at])
            push(int.from_bytes(raw, "little", signed=True))
            at += 1 + len(raw)
        elif op in (0x58, 0x54, 0x42):  # BINUNICODE, BINSTRING, BINBYTES
            raw = _take(data, at + 4, _short(int.from_bytes(_take(data, at, 4), "little")))
            push(raw if op == 0x42 else raw.decode("latin1"))
            at += 4 + len(raw)
        elif op == 0x61:  # APPEND
            item = pop()
            _expect(stack[-1], list).append(item)
        elif op == 0x7D:  # EMPTY_DICT
            push({})
        elif op == 0x73:  # SETITEM
            value, key = pop(), pop()
            _set_items(stack[-1], [key, value])
        elif op in _CONSTANTS:
            push(_CONSTANTS[op])
        elif op == 0x63:  # GLOBAL
            module, at = _line(data, at)
            name, at = _line(data, at)
            push(_admit(module, name))
        elif op == 0x93:  # STACK_GLOBAL
            name = pop()
            push(_admit(pop(), name))
        elif op == 0x62:  # BUILD
            state = pop()
            _set_byte_order(stack[-1], state)
        elif op == 0x95:  # FRAME: only a hint for readers of streams
            _take(data, at, 8)
            at += 8
        elif op == 0x2E:  # STOP
            return pop(), count
        else:
            _refuse(f"it uses the pickle instruction 0x{op:02x}")
    _refuse(f"it takes more than {most:,} instructions, whose results may fill the memory")


_CLOSING = frozenset((0x74, 0x65, 0x75))
_INTEGER_WIDTHS = {0x4B: 1, 0x4D: 2, 0x4A: 4}
_CONSTANTS = {0x4E: None, 0x88: True, 0x89: False}


def _short(length: int) -> int:
    if length > STRING_BYTES:
        _refuse(f"it holds a string of {length:,} bytes")
    return length


def _expect(container: Any, kind: type) -> Any:
    if type(container) is not kind:
        _refuse(f"it fills a {type(container).__name__} like a {kind.__name__}")
    return container


def _set_items(container: Any, items: list[Any]) -> None:
    target = _expect(container, dict)
    for key, value in zip(items[::2], items[1::2], strict=False):
        if not isinstance(key, str):
            _refuse("it holds a dict whose keys are not names")
        target[key] = value
