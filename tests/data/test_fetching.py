"""Fetching, against a server on this machine."""

import gzip
import http.server
import lzma
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fivo.data import fetch, load
from fivo.errors import InputError
from tests.data.files import original_pickle


class Server(http.server.ThreadingHTTPServer):
    """Serves `content` everywhere, in one of the ways servers behave."""

    daemon_threads = True
    content: bytes
    cut_after: int | None = None
    obeys_ranges = True
    says_length = True
    redirect: str | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        requested = self.headers["Range"]
        server.ranges.append(requested)
        if self.path == "/missing":
            return self.send_error(404)
        if server.redirect and self.path != "/target":
            self.send_response(302)
            self.send_header("Location", server.redirect)
            return self.end_headers()
        start = int(requested.removeprefix("bytes=").removesuffix("-")) if requested and server.obeys_ranges else 0
        if start >= len(server.content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        body = server.content[start:]
        if server.says_length:
            self.send_header("Content-Length", str(len(body)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        self.end_headers()
        self.wfile.write(body if server.cut_after is None else body[: server.cut_after])
        return None

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tiny, known_tiny, monkeypatch) -> Iterator[Server]:
    with Server() as server:
        server.content = original_pickle(tiny)
        monkeypatch.setattr("fivo.data.registry._SOURCE", server.url)
        monkeypatch.setenv("no_proxy", "*")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_set_is_fetched_into_the_cache_and_only_once(server, tiny, tmp_path: Path):
    seen = []
    fetched = fetch("tiny", progress=lambda done, total: seen.append((done, total)))
    assert fetched.path == tmp_path / "cache" / "fivo" / "tiny_music.pickle"
    assert fetched.source == f"{server.url}/tiny_music.pickle"
    assert names(fetched.path.parent) == ["tiny_music.pickle"]
    assert seen[0] == (0, len(server.content))
    assert seen[-1] == (len(server.content), len(server.content))
    assert load("tiny").fingerprint == tiny.fingerprint
    again = fetch("tiny")
    assert (again.path, again.source) == (fetched.path, None)
    assert len(server.ranges) == 1


def test_an_interrupted_transfer_continues_in_the_next_call(server, tiny, tmp_path: Path):
    server.cut_after = 300
    with pytest.raises(InputError, match=r"closed after 900 of .* run the same command again to continue") as caught:
        fetch("tiny", data_dir=tmp_path)
    assert "\n" not in str(caught.value)
    part = next(name for name in names(tmp_path) if name.endswith(".part"))
    assert (tmp_path / part).read_bytes() == server.content[:900]
    assert server.ranges == [None, "bytes=300-", "bytes=600-"]
    server.cut_after = None
    assert fetch("tiny", data_dir=tmp_path).path.read_bytes() == server.content
    assert server.ranges[3:] == ["bytes=900-"]
    assert [name for name in names(tmp_path) if "tiny" in name] == ["tiny_music.pickle"]


def test_a_server_without_ranges_starts_over(server, tmp_path: Path):
    server.cut_after = 300
    server.obeys_ranges = False
    with pytest.raises(InputError, match="closed after 300 of"):
        fetch("tiny", data_dir=tmp_path)
    server.cut_after = None
    assert fetch("tiny", data_dir=tmp_path).path.read_bytes() == server.content


@pytest.mark.parametrize("rest", [b"something else", b"x" * 100_000])
def test_the_beginning_of_another_file_is_thrown_away(server, tmp_path: Path, rest):
    server.cut_after = 300
    with pytest.raises(InputError):
        fetch("tiny", data_dir=tmp_path)
    part = next(path for path in tmp_path.iterdir() if path.suffix == ".part")
    part.write_bytes(rest)
    server.cut_after = None
    assert fetch("tiny", data_dir=tmp_path).path.read_bytes() == server.content


def test_a_cut_that_the_server_does_not_announce_is_noticed(server, tmp_path: Path):
    server.says_length = False
    server.cut_after = 300
    with pytest.raises(InputError, match="is not the known file of 'tiny'"):
        fetch("tiny", data_dir=tmp_path)
    server.cut_after = None
    assert fetch("tiny", data_dir=tmp_path).path.read_bytes() == server.content


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path: Path):
    server.content = server.content[:-1] + b"!"
    with pytest.raises(InputError, match="is not the known file of 'tiny': SHA-256"):
        fetch("tiny", data_dir=tmp_path / "data")
    assert names(tmp_path / "data") == []


@pytest.mark.parametrize("says_length", [True, False])
def test_a_file_that_is_too_large_is_not_downloaded(server, tmp_path: Path, says_length):
    server.content = bytes(4 << 20)
    server.says_length = says_length
    with pytest.raises(InputError, match=r"give another with --from"):
        fetch("tiny", data_dir=tmp_path / "data")
    assert sum(path.stat().st_size for path in (tmp_path / "data").iterdir()) < 2 << 20


@pytest.mark.parametrize(("compress", "suffix"), [(lzma.compress, ".xz"), (gzip.compress, ".gz"), (bytes, "")])
def test_any_form_of_the_file_will_do(server, tiny, tmp_path: Path, compress, suffix):
    server.content = compress(server.content)
    fetched = fetch("tiny", source=f"{server.url}/any", data_dir=tmp_path)
    assert fetched.path.name == f"tiny_music.pickle{suffix}"
    assert load("tiny", data_dir=tmp_path).fingerprint == tiny.fingerprint


def test_a_local_file_is_copied(tiny, known_tiny, tmp_path: Path):
    source = tmp_path / "download (1)"
    source.write_bytes(original_pickle(tiny))
    fetched = fetch("tiny", source=source, data_dir=tmp_path / "data")
    assert names(tmp_path / "data") == ["tiny_music.pickle"]
    assert fetched.path.read_bytes() == source.read_bytes()
    source.write_bytes(b"other")
    with pytest.raises(InputError, match="is not the known file"):
        fetch("tiny", source=source, data_dir=tmp_path / "data")
    assert fetched.path.read_bytes() == original_pickle(tiny)


def test_the_matlab_form_keeps_its_name(pianoroll_files, tmp_path: Path):
    fetched = fetch("jsb", source=pianoroll_files / "mat" / "JSB_Chorales.mat", data_dir=tmp_path)
    assert fetched.path == tmp_path / "JSB_Chorales.mat"


def test_a_damaged_file_is_replaced(server, tiny, tmp_path: Path):
    (tmp_path / "tiny_music.pickle").write_bytes(b"damaged")
    assert fetch("tiny", data_dir=tmp_path).source is not None
    assert load("tiny", data_dir=tmp_path).fingerprint == tiny.fingerprint


def test_a_damaged_file_of_another_name_is_pointed_out_and_kept(server, tmp_path: Path):
    (tmp_path / "Tiny Music.pickle").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"Tiny Music\.pickle is found first and is not the known file; move it away"):
        fetch("tiny", data_dir=tmp_path)
    assert (tmp_path / "Tiny Music.pickle").read_bytes() == b"damaged"


def test_redirects_are_followed_within_http_only(server, tmp_path: Path):
    server.redirect = f"{server.url}/target"
    assert fetch("tiny", data_dir=tmp_path / "data").path.read_bytes() == server.content
    for target in ("file:///etc/hostname", "ftp://127.0.0.1/x", "data://x"):
        server.redirect = target
        with pytest.raises(InputError, match=r"not allowed|cannot be fetched; give an address"):
            fetch("tiny", source=f"{server.url}/start", data_dir=tmp_path / "other")


def test_an_error_of_the_server_is_one_sentence(server, tmp_path: Path):
    with pytest.raises(InputError, match="/missing answered 404 Not Found; check the address"):
        fetch("tiny", source=f"{server.url}/missing", data_dir=tmp_path)


def test_offline_says_what_to_do(server, tmp_path: Path):
    server.shutdown()
    server.server_close()
    with pytest.raises(
        InputError, match=r"could not be fetched .* check the network .* `fivo data fetch tiny --from FILE`"
    ):
        fetch("tiny", data_dir=tmp_path)


@pytest.mark.parametrize("source", ["ftp://example.org/x", "file:///etc/hostname", "http://", "https://[x", "data://x"])
def test_other_addresses_are_refused(known_tiny, source, tmp_path: Path):
    with pytest.raises(InputError, match="cannot be fetched; give an address that starts with https"):
        fetch("tiny", source=source, data_dir=tmp_path)


def test_a_folder_that_cannot_be_written_is_one_sentence(server, tiny, tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=r"cannot be stored in .*; free some space or choose a writable folder"):
        fetch("tiny", data_dir=tmp_path / "file")
    source = tmp_path / "source"
    source.write_bytes(original_pickle(tiny))
    with pytest.raises(InputError, match="cannot be written"):
        fetch("tiny", source=source, data_dir=tmp_path / "file")


def test_a_full_disk_is_one_sentence(server, tmp_path: Path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        fetch("tiny", data_dir=tmp_path)
    monkeypatch.undo()
    assert "tiny_music.pickle" not in names(tmp_path)


def test_bach_needs_no_fetching():
    assert fetch("bach").source is None
    with pytest.raises(InputError, match="bach is shipped with the package"):
        fetch("bach", source="https://example.org/bach")
