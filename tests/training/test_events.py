"""TensorBoard events, and the sentence for who has not installed what they need."""

import sys

import pytest

from fivo.errors import InputError
from fivo.training.events import EventWriter
from tests.sentences import assert_one_sentence


def test_every_number_of_a_row_is_a_scalar(tmp_path):
    pytest.importorskip("tensorboardX", reason="the extra `tensorboard` is not installed; `make test` installs it")
    writer = EventWriter(tmp_path, 0)
    writer.write({"step": 3, "bound": -1.5, "validation": -2.5})
    writer.close()
    content = b"".join(path.read_bytes() for path in (tmp_path / "events").iterdir())
    assert b"bound" in content
    assert b"validation" in content
    assert b"step" not in content


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(InputError) as refused:
        EventWriter(tmp_path, 0)
    assert_one_sentence(refused.value, "fivo[tensorboard]")
