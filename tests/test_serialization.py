"""`save` and `load`: any array comes back as it was, one flipped bit never does, and bad files are one sentence."""

import hashlib
import json
import struct

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import fivo
from fivo.errors import InputError
from fivo.serialization import read_metadata
from tests.sentences import assert_one_sentence

BASE = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
ZEROS = "0" * 64
LAYOUTS = {
    "transposed": BASE.T,
    "fortran": np.asfortranarray(BASE),
    "strided": BASE[:, ::2, 1::2],
    "reversed": BASE[::-1, :, ::-1],
    "broadcast": np.broadcast_to(BASE[0, 0], (3, 4)),
    "big-endian": BASE.astype(">f4"),
    "a number": np.array(3.5),
    "empty": np.zeros((0, 3)),
    "booleans": BASE > 7,
}


@pytest.mark.parametrize("array", LAYOUTS.values(), ids=LAYOUTS)
def test_arrays_of_any_layout_come_back(tmp_path, array):
    fivo.save(tmp_path / "x", {"x": array})
    back = fivo.load(tmp_path / "x", like={"x": array})["x"]
    np.testing.assert_array_equal(back, array)
    assert back.shape == array.shape


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "complex64", "uint16", "int8"])
def test_types_of_jax_come_back(tmp_path, name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    array = np.array([0, 1, 2, 4]).astype(dtype)
    fivo.save(tmp_path / "x", {"x": array, "y": jnp.asarray(array)})
    back = fivo.load(tmp_path / "x", like={"x": array, "y": jnp.asarray(array)})
    assert back["x"].dtype == back["y"].dtype == dtype
    assert back["x"].tobytes() == np.asarray(back["y"]).tobytes() == array.tobytes()


UNKNOWN = {
    "text": np.array(["a"]),
    "objects": np.array([object()]),
    "dates": np.array([np.datetime64("2020")]),
    "structures": np.zeros(2, [("a", "f4")]),
    "complex128": np.ones(2, complex),
}


@pytest.mark.parametrize("array", UNKNOWN.values(), ids=UNKNOWN)
def test_arrays_that_cannot_be_saved(tmp_path, array):
    with pytest.raises(InputError) as refusal:
        fivo.save(tmp_path / "x", {"x": array})
    assert_one_sentence(refusal.value, "['x']", array.dtype.name)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}], ids=["NaN", "an object", "a set"])
def test_metadata_that_is_no_json(tmp_path, value):
    with pytest.raises(InputError) as refusal:
        fivo.serialization.save(tmp_path / "x", {"x": BASE}, {"value": value})
    assert_one_sentence(refusal.value, "metadata", "JSON")


@pytest.fixture
def saved(tmp_path):
    path, tree = tmp_path / "good.safetensors", {"a": jnp.arange(5.0), "b": np.eye(2), "key": jax.random.key(7)}
    fivo.serialization.save(path, tree, {"step": 3, "note": 'a "sha256":"quoted" word'})
    return path, tree


def test_other_tools_read_the_file(saved):
    path, _ = saved
    np.testing.assert_array_equal(load_file(path)["['b']"], np.eye(2))


def test_the_checksum_is_of_the_file_with_zeros_in_its_place(saved):
    content = saved[0].read_bytes()
    header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
    digest = header["__metadata__"]["sha256"]
    assert hashlib.sha256(content.replace(digest.encode(), ZEROS.encode())).hexdigest() == digest


def test_no_flipped_bit_goes_unnoticed(saved):
    """Every bit of the file in turn."""
    path, tree = saved
    content = path.read_bytes()
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            path.write_bytes(flipped)
            for read in (lambda: fivo.load(path, like=tree), lambda: read_metadata(path)):
                with pytest.raises(InputError) as refusal:
                    read()
            if bit == 0:
                assert_one_sentence(refusal.value, str(path))


def write_sealed(path, header: str, data: bytes = b"") -> None:
    """A file of a given header, with the right checksum in the place of the zeros."""
    content = struct.pack("<Q", len(header)) + header.encode() + data
    path.write_bytes(content.replace(ZEROS.encode(), hashlib.sha256(content).hexdigest().encode()))


def header_of(tensors: str = "", metadata: str = "{}", version: str = "1") -> str:
    about = f'"__metadata__":{{"fivo":{json.dumps(metadata)},"fivo_format":"{version}","sha256":"{ZEROS}"}}'
    return "{" + about + tensors + "}"


MALFORMED = {
    "nested metadata": header_of(metadata="[" * 100_000),
    "a number of 100,000 digits": header_of(metadata='{"step": ' + "1" * 100_000 + "}"),
    "a list for metadata": header_of(metadata="[1]"),
    "no JSON for metadata": header_of(metadata="{"),
    "a nested header": header_of(tensors=',"x":' + '{"a":' * 100_000),
    "a header of 100,000 digits": header_of(tensors=',"x":' + "1" * 100_000),
    "an unknown dtype": header_of(tensors=',"x":{"dtype":"F128","shape":[1],"data_offsets":[0,8]}'),
    "a dtype that numpy has not": header_of(tensors=',"x":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}'),
    "offsets beyond the end": header_of(tensors=',"x":{"dtype":"F64","shape":[9],"data_offsets":[0,72]}'),
    "a shape of another size": header_of(tensors=',"x":{"dtype":"F64","shape":[7],"data_offsets":[0,8]}'),
}


@pytest.mark.parametrize("header", MALFORMED.values(), ids=MALFORMED)
def test_malformed_files_are_one_sentence(tmp_path, header):
    path = tmp_path / "x"
    write_sealed(path, header, bytes(3 if "F6" in header else 8))
    readers = [lambda: fivo.load(path, like={})]
    readers += [lambda: read_metadata(path)] if "data_offsets" not in header else []
    for read in readers:
        with pytest.raises(InputError) as refusal:
            read()
        assert_one_sentence(refusal.value, str(path))
        assert len(str(refusal.value)) < 400


def test_a_newer_format_is_named(tmp_path):
    write_sealed(tmp_path / "x", header_of(version="2"))
    with pytest.raises(InputError) as refusal:
        fivo.load(tmp_path / "x", like={})
    assert_one_sentence(refusal.value, "format 2", "newer")


@pytest.mark.parametrize(
    ("metadata", "part"),
    [({"fivo": '{"step": 1}'}, "development version of fivo 0.1"), ({"format": "np"}, "fivo.save")],
    ids=["old", "foreign"],
)
def test_files_without_a_checksum(tmp_path, metadata, part):
    path = tmp_path / "x"
    save_file({"['a']": np.ones(2)}, path, metadata)
    for read in (lambda: fivo.load(path, like={"a": np.ones(2)}), lambda: read_metadata(path)):
        with pytest.raises(InputError) as refusal:
            read()
        assert_one_sentence(refusal.value, str(path), part)
