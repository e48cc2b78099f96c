"""docs/speech.md: its walk is run, every other command exists; AN4 is what docs/results.md says."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from docs.execute import blocks
from fivo.cli.commands import app
from fivo.data import load
from tests.cli.commands import run
from tests.music import cache as cache
from tests.music import quickly_compiled as quickly_compiled

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "speech.md"
MEASURED = ROOT / "docs" / "results.md"
AN4 = ROOT.parent / "shared" / "data" / "speech" / "an4"


def commands(pattern: str, *pages: Path) -> list[list[str]]:
    """The lines of shell blocks, as words."""
    text = "".join(page.read_text() for page in pages)
    blocks = re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_the_walk(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.py").write_text("".join(block.code for block in blocks(PAGE.read_text())))
    runpy.run_path(str(tmp_path / "page.py"))
    walk = commands(r"^<!-- run -->\n```sh\n(.*?)^```$", PAGE)
    assert [words[1] for words in walk] == ["fit", "fit", "evaluate", "sample"]
    for words in walk:
        outcome = run(capsys, *words[1:])
        assert outcome.code == 0, outcome.err
        if words[1] == "evaluate":
            assert "relative to runs/elbo" in outcome.out
    assert (tmp_path / "continued.wav").stat().st_size == 44 + 2 * 200 * 82


@pytest.mark.parametrize(
    "words", [words for words in commands(r"^```sh\n(.*?)^```$", PAGE, MEASURED) if words[0] == "fivo"], ids=" ".join
)
def test_every_command_can_be_given(words):
    app.parse_args(
        [word.replace("BOUND", "fivo").replace("STEPS", "2000") for word in words[1:]],
        exit_on_error=False,
        print_error=False,
    )


def test_an4_is_what_the_page_says(tmp_path, monkeypatch):
    if not AN4.is_dir():
        pytest.skip("AN4 is not beside the checkout (../shared/data/speech/an4)")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for split, source in (("train", "an4_clstk"), ("test", "an4test_clstk")):
        (tmp_path / "an4").mkdir(exist_ok=True)
        (tmp_path / "an4" / split).symlink_to(AN4 / "wav" / source)
    dataset = load(tmp_path / "an4")
    assert dataset.counts == {"train": (696, 149_264), "valid": (74, 16_160), "test": (130, 28_560)}
    assert dataset.sound.scaling.deviation == pytest.approx(1089.4399, abs=1e-3)
