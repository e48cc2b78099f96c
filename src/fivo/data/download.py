"""Downloading over http(s), continuing where an earlier attempt stopped."""

import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fivo.data.foreign import reason
from fivo.errors import InputError

Progress = Callable[[int, int | None], None]

_SCHEMES = ("http", "https")
_CHUNK = 1 << 16
_TIMEOUT_SECONDS = 30.0
_ATTEMPTS = 3
_LENGTH_DIGITS = 18


class Interrupted(Exception):
    """The connection failed; what arrived is in the partial file."""


def is_url(source: str) -> bool:
    """Whether a source names an address rather than a file; refuses addresses that are not http or https."""
    if "://" not in source:
        return False
    try:
        address = urllib.parse.urlsplit(source)
        good = address.scheme in _SCHEMES and bool(address.hostname) and (address.port is None or address.port > 0)
    except ValueError:  # no address, or no port that there can be
        good = False
    if not good:
        raise InputError(
            f"{reason(source)} cannot be fetched; give an address that starts with https:// or http://, or the path of "
            "a file."
        )
    return True


def download(url: str, partial: Path, limit: int, progress: Progress) -> None:
    """Brings `url` into `partial`, at most `limit` bytes of it.

    Goes on for as long as every new connection brings something, a few times at most; then raises `Interrupted`.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        before = _size(partial)
        try:
            _transfer(url, partial, limit, progress)
            return
        except Interrupted:
            if attempt == _ATTEMPTS or _size(partial) <= before:
                raise


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Goes only where a user could have pointed to, and leaves no connection open."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        is_url(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except BaseException:
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _opener() -> urllib.request.OpenerDirector:
    """Like `build_opener`, without the handlers for file:, ftp: and data: addresses."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        _Redirects,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _transfer(url: str, partial: Path, limit: int, progress: Progress) -> None:
    have = _size(partial)
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with _opener().open(request, timeout=_TIMEOUT_SECONDS) as response:
            if have and not _continues(response, have):
                have = 0
            _receive(response, partial, have, limit, progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not have:
            raise InputError(
                f"{url} answered {error.code} {reason(error.reason)}; check the address or give another with --from."
            ) from error
        partial.unlink()  # longer than what the server has: of no use
        _transfer(url, partial, limit, progress)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise Interrupted(reason(getattr(error, "reason", error) or type(error).__name__)) from error
    except (ValueError, OverflowError) as error:  # an address, perhaps one that a server sent us on to, or a header
        if isinstance(error, InputError):
            raise
        raise InputError(f"{url} cannot be fetched ({reason(error)}); give another address with --from.") from error


def _read(response: http.client.HTTPResponse) -> bytes:
    """The next bytes; a failure of the network, unlike one of the disk, is an interruption."""
    try:
        return response.read1(_CHUNK)  # `read` follows a server that announces a piece of -1 bytes to its end
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(reason(error)) from error


def _continues(response: http.client.HTTPResponse, have: int) -> bool:
    """Whether the answer starts at byte `have`; a server may ignore the range and send everything."""
    return response.status == http.HTTPStatus.PARTIAL_CONTENT and response.headers.get("Content-Range", "").startswith(
        f"bytes {have}-"
    )


def _receive(response: http.client.HTTPResponse, partial: Path, have: int, limit: int, progress: Progress) -> None:
    declared = response.headers.get("Content-Length", "")
    total = have + int(declared) if declared.isdecimal() and len(declared) <= _LENGTH_DIGITS else None
    if total is not None and total > limit:
        raise InputError(
            f"{response.url} holds {total:,} bytes, but the known file at most {limit:,}; give another with --from."
        )
    with open(partial, "r+b" if have else "wb") as file:
        file.seek(have)
        progress(have, total)
        while chunk := _read(response):
            have += len(chunk)
            if have > limit:
                raise InputError(
                    f"{response.url} sends more than the {limit:,} bytes of the known file; give another with --from."
                )
            file.write(chunk)
            progress(have, total)
        file.flush()
        os.fsync(file.fileno())
    if total is not None and have < total:
        raise Interrupted(f"the connection closed after {have:,} of {total:,} bytes")
