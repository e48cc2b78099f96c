"""The restricted unpickler: it reads what the music files need, and executes nothing."""

import contextlib
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivo.data.budget import Budget
from fivo.data.unpickle import loads
from fivo.errors import InputError
from tests.data.files import note_lists, original_pickle, pickled

NESTED = {"train": [[(60, 64), ()], [(21,)]], "valid": [[[108, 3000, -5, 2**40]]], "test": [[(1, 2, 3)], [(1,) * 4]]}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_containers_and_integers_survive(protocol):
    assert loads(pickle.dumps(NESTED, protocol), Budget("x")) == NESTED


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8, np.uint8])
def test_numpy_integers_become_integers(protocol, kind):
    values = [kind(60), kind(108), kind(21)]
    read = loads(pickle.dumps(values, protocol), Budget("x"))
    assert read == [60, 108, 21]
    assert all(type(value) is int for value in read)


def test_both_names_of_the_numpy_core_are_admitted():
    new = pickle.dumps([np.int64(60)], 3)
    assert b"numpy._core" in new
    assert loads(new.replace(b"numpy._core", b"numpy.core"), Budget("x")) == loads(new, Budget("x")) == [60]


def test_byte_order_is_obeyed():
    little = pickle.dumps(np.int32(258), 3)
    assert little.count(b"<") == 1
    assert loads(little.replace(b"<", b">"), Budget("x")) == int.from_bytes((258).to_bytes(4, "little"), "big")


def test_the_form_of_the_original_files_is_read(tiny):
    assert loads(original_pickle(tiny), Budget("x")) == note_lists(tiny)


class _Calls:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("function", [os.system, eval, exec, print, getattr, np.load, np.frombuffer])
def test_no_function_is_called(protocol, function, tmp_path: Path):
    target = tmp_path / "executed"
    content = pickle.dumps({"train": _Calls(function, f"touch {target}")}, protocol)
    with pytest.raises(InputError, match=r"x is not a pickle of note lists: it names .*nothing in it was executed"):
        loads(content, Budget("x"))
    assert not target.exists()


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(np.float64(60.0), 3),
        pickle.dumps(np.arange(3), 3),
        pickle.dumps(60.5, 2),
        pickle.dumps({1, 2}, 4),
        pickle.dumps({60: 1}, 2),
        pickle.dumps([1], 0),
        b"\x80\x02cnumpy\ndtype\n}b.",  # sets the state of an admitted name
        b"\x80\x02cnumpy\ndtype\n)\x81.",  # makes a new instance of it
        b"\x80\x02(inumpy\ndtype\n.",  # the same in the manner of protocol 0
        b"\x80\x02cnumpy\ndtype\nK\x01R.",  # calls it with a number
        b"\x80\x02cnumpy\ndtype\nU\x02O8\x85R.",  # object arrays
        b"\x80\x02]K\x01\x85R.",  # calls a list
        b"\x80\x02U\x01ah\x00.",  # recalls what was never stored
        b"\x80\x02}]a.",  # appends to a dict
        b"\x80\x02Pid\n.",  # a persistent identifier
        b"\x80\x02\x82\x01.",  # the extension registry
        b"\x80\x04" + b"]" * 50_000 + b"a" * 49_999 + b"\x8c\x01x\x93.",  # names a deeply nested list
        b"\x80\x02.",
        b"",
        b"PNG",
    ],
)
def test_everything_else_is_refused(content):
    with pytest.raises(InputError):
        loads(content, Budget("x"))


def test_a_huge_memo_index_costs_nothing():
    assert loads(b"\x80\x02K\x01r" + struct.pack("<I", 2**32 - 1) + b".", Budget("x")) == 1


def test_every_beginning_of_a_file_is_refused(tiny):
    for content in (pickled(tiny, 2), pickled(tiny, 4), original_pickle(tiny)):
        for end in range(0, len(content), 7):
            with pytest.raises(InputError):
                loads(content[:end], Budget("x"))


def test_the_sentence_stays_one_line():
    with pytest.raises(InputError) as caught:
        loads(b"\x80\x04\x8c\x03a\nb\x8c\x03c\x1bd\x93.", Budget("x"))
    assert str(caught.value).isprintable()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), min_size=1, max_size=8))
def test_no_damage_escapes_as_another_error(changes):
    content = bytearray(b"\x80\x02" + pickle.dumps([[60, 64], np.int64(70), "train", {"a": ()}], 4)[2:])
    for position, value in changes:
        content[position % len(content)] = value
    with contextlib.suppress(InputError):
        loads(bytes(content), Budget("x"))
