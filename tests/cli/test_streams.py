"""Standard streams that are plain, full, closed or gone: a sentence or silence, never a traceback."""

import subprocess
from pathlib import Path

import pytest

from tests.music import SETTINGS, command_line, environment, options
from tests.sentences import assert_one_sentence

ASCII = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}


def shell(cache: Path, redirection: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess:
    """`fivo ARGUMENTS REDIRECTION` in a shell."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *command_line(*arguments)],
        env={**environment(cache), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_terminal_that_knows_only_ascii(cache, music_file, tmp_path):
    run = trained(cache, music_file, tmp_path)
    evaluated = shell(cache, "", "evaluate", run, "--particles", 2, "--repeats", 2, **ASCII)
    assert (evaluated.returncode, evaluated.stderr) == (0, evaluated.stderr.encode("ascii").decode())
    assert "+/- s.e." in evaluated.stdout
    sizes = ["--particles", "2", "--sequences", 2, "--repeats", 2, "--lineage-particles", 2]
    diagnosed = shell(cache, "", "diagnose", run, *sizes, **ASCII)
    assert diagnosed.returncode == 0, diagnosed.stderr
    assert all(sign in diagnosed.stdout for sign in ("+/-", "1/2 var. of p^", "KL(q||p)"))


def trained(cache: Path, music_file: Path, tmp_path: Path) -> Path:
    run = tmp_path / "run"
    done = shell(cache, "", "fit", *options({"dataset": music_file, **SETTINGS, "steps": 40}), "--out", run, **ASCII)
    assert done.returncode == 0, done.stderr
    return run


def test_names_that_ascii_does_not_have(cache, tmp_path):
    (tmp_path / "mus\u00efk \u4e00").mkdir()
    done = shell(cache, "", "report", tmp_path / "mus\u00efk \u4e00", "--format", "md", **ASCII, PYTHONUTF8="1")
    assert done.returncode == 2
    assert_one_sentence(done.stderr.rstrip("\n"), "mus\\xefk \\u4e00")


@pytest.mark.parametrize("arguments", [["data", "list"], ["--help"], ["--version"], ["fit", "--help"]])
def test_a_full_disk_behind_the_output(cache, arguments):
    done = shell(cache, "> /dev/full", *arguments)
    assert done.returncode == 2
    assert_one_sentence(done.stderr.rstrip("\n"), "No space left on device")


def test_a_full_disk_behind_a_table(cache, tmp_path):
    results = Path(__file__).parents[2] / "results" / "table1.json"
    done = shell(cache, "> /dev/full", "report", results, "--format", "md")
    assert done.returncode == 2
    assert_one_sentence(done.stderr.rstrip("\n"), "No space left on device")
    assert shell(cache, "| head -1 | wc -l", "report", results, "--format", "csv").stdout.strip() == "1"


def test_sentences_that_nobody_can_read_change_nothing(cache, music_file, tmp_path):
    command = ["fit", *options({"dataset": music_file, **SETTINGS, "steps": 40})]
    assert shell(cache, "2> /dev/full", *command, "--out", tmp_path / "full").returncode == 0
    assert shell(cache, "2> /dev/full", "trian").returncode == 2


@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams(cache, redirection):
    results = Path(__file__).parents[2] / "results" / "table1.json"
    for arguments in (["data", "list"], ["report", results, "--format", "csv"]):
        done = shell(cache, redirection, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_printed_before_a_mistake_is_not_lost(cache, tmp_path):
    """Standard output is a pipe here, whose buffer is written at the end."""
    (tmp_path / "bad.pickle").write_bytes(b"bad")
    done = shell(cache, "", "data", "check", "bach", tmp_path / "bad.pickle")
    assert (done.returncode, done.stdout[:10]) == (2, "bach: good")


def test_a_reader_that_has_gone_is_no_mistake(cache):
    with subprocess.Popen(
        command_line("data", "list"), env=environment(cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (1, b"")
