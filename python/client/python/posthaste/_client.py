"""The client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from . import _native, _state
from ._content import Content, Upload, is_stream, whole
from ._errors import ConfigError, Error, InvalidRequest
from ._loop import Operations
from ._response import Connection, Response

#: Header fields of a request: a mapping, or pairs of name and value.
HeaderTypes = Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]

#: A place in the file system.
PathTypes = str | os.PathLike[str]


class Client:
    """Fetches over HTTP/3. Parallel requests to one origin share a connection.

    A client belongs to the event loop that uses it first, and to its process. Use it in `async with`, or call `aclose`.

    Args:
        profile: The bundle of policies that decide about speed: a name of `posthaste profiles`, or a TOML file;
            parameters may follow, as in `mobile@code=false`.
        state: Directory for what is kept between processes: address tokens, in which servers can also put what they have
            learnt of the path. `posthaste get --state` uses the same. Read at once, written by `aclose`. Nothing is kept
            by default.
        verify: True trusts the system's certificates, a path those in this PEM file. False trusts everyone: anyone on
            the path can then read and change everything.
        timeout: Seconds to connect, until a response begins, and without any of its bytes. By default 10 to connect and
            30 for the others.
        keep_alive: Seconds of silence after which the server is asked whether it is there; connections then stay open
            until the client hangs up. With None, idle ones end after 30 seconds. Default 5.
        max_redirects: Redirects that are followed for requests without content. Default 10; 0 returns them.
        early_data: Whether requests with safe methods may leave with the first packets of a connection that resumes a
            session (0-RTT); who records them can send them again.
        quic_version: QUIC version of the first packet: 1 (RFC 9000) or 2 (RFC 9369).
        qlog: Directory for a qlog trace of each connection.

    Raises:
        ConfigError: a setting cannot be used.
    """

    def __init__(
        self,
        *,
        profile: str = "mobile",
        state: PathTypes | None = None,
        verify: bool | PathTypes = True,
        timeout: float | None = None,
        keep_alive: float | None = 5.0,
        max_redirects: int = 10,
        early_data: bool = True,
        quic_version: int = 1,
        qlog: PathTypes | None = None,
    ) -> None:
        if not isinstance(max_redirects, int) or not 0 <= max_redirects <= 1000:
            raise ConfigError(f"max_redirects is a number from 0 to 1000, not {max_redirects!r}")
        if quic_version not in (1, 2):
            raise ConfigError(f"quic_version is 1 or 2, not {quic_version!r}")
        self._state = None if state is None else Path(state)
        settings: dict[str, Any] = {
            "profile": profile,
            "verify": _trust(verify),
            "timeout": timeout,
            "keep_alive": keep_alive,
            "max_redirects": max_redirects,
            "early_data": early_data,
            "quic_version": quic_version,
            "qlog": _trace_directory(qlog),
        }
        tokens = "" if self._state is None else _state.load(self._state)
        self._session = _native.Session(settings, tokens)
        self._operations = Operations(self._session)

    async def request(
        self, method: str, url: str, *, headers: HeaderTypes | None = None, content: Content | None = None
    ) -> Response:
        """Sends a request, and returns the response when its head is here.

        Cancelled, it cancels the request's stream. Requests with content do not follow redirects.

        Args:
            method: GET, POST, ...
            url: An absolute `https` URL.
            headers: Header fields.
            content: The request's body: bytes, a str (sent as UTF-8), or an iterable or asynchronous iterable of bytes,
                which is read as fast as the server takes it, also while the response is read. If it raises an
                exception, the request is reset, and this method or the response's reading raises it.

        Raises:
            InvalidRequest: URL, method, header fields or content cannot be sent.
            ConnectError: no connection came about.
            TransferError: no response came.
            TimeoutError: it did not come in time.
            StateError: the client is closed, or another loop's or process's.
        """
        self._operations.check()
        fields = _fields(headers)
        try:
            if is_stream(content):
                return await self._upload(method, url, fields, content)
            operation = self._session.request(method, url, fields, whole(content))
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"the method, the URL or the content is not text: {error}") from None
        native = await self._operations.wait(operation)
        return Response(native, self._operations, None)

    async def _upload(self, method: str, url: str, fields: list[tuple[bytes, bytes]], content: Any) -> Response:
        operation, outgoing = self._session.upload(method, url, fields)
        upload = Upload(self._operations, outgoing, content)
        try:
            native = await self._operations.wait(operation)
        except asyncio.CancelledError:
            upload.task.cancel()
            raise
        except Error:
            upload.task.cancel()
            upload.check()
            raise
        upload.check()
        return Response(native, self._operations, upload)

    async def get(self, url: str, *, headers: HeaderTypes | None = None) -> Response:
        """Requests `url` with GET; as `request`."""
        return await self.request("GET", url, headers=headers)

    async def head(self, url: str, *, headers: HeaderTypes | None = None) -> Response:
        """Requests `url` with HEAD; as `request`."""
        return await self.request("HEAD", url, headers=headers)

    async def post(self, url: str, *, content: Content, headers: HeaderTypes | None = None) -> Response:
        """Sends `content` to `url` with POST; as `request`."""
        return await self.request("POST", url, headers=headers, content=content)

    async def put(self, url: str, *, content: Content, headers: HeaderTypes | None = None) -> Response:
        """Sends `content` to `url` with PUT; as `request`."""
        return await self.request("PUT", url, headers=headers, content=content)

    def connections(self) -> list[Connection]:
        """The open connections, and the last 1,024 that are over, as they are now."""
        return [Connection(**report) for report in self._session.connections()]

    def hang_up(self) -> None:
        """Closes the connections; responses that are arriving fail. Later requests make new ones, which resume the
        sessions of these, with 0-RTT if the server permits it."""
        self._operations.check()
        self._session.hang_up()

    async def aclose(self) -> None:
        """Gives up what is in progress, closes the connections, and keeps the state. A second call does nothing."""
        if self._operations.is_closed:
            return
        await self._operations.close()
        if self._state is not None:
            _state.save(self._state, self._session.tokens())

    async def __aenter__(self) -> Client:
        self._operations.check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def _trust(verify: bool | PathTypes) -> bool | tuple[str, bytes]:
    if isinstance(verify, bool):
        return verify
    path = Path(verify)
    try:
        return (str(path), path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"cannot read certificates from {path}: {error.strerror}\n"
            "  it must be a PEM file, with lines `-----BEGIN CERTIFICATE-----`"
        ) from error


def _trace_directory(qlog: PathTypes | None) -> Path | None:
    if qlog is None:
        return None
    path = Path(qlog)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot write traces into {path}: {error.strerror}\n  choose a writable directory with qlog=DIRECTORY"
        ) from error
    return path


def _fields(headers: HeaderTypes | None) -> list[tuple[bytes, bytes]]:
    if headers is None:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    try:
        return [(_field(name), _field(value)) for name, value in pairs]
    except (TypeError, ValueError) as error:
        raise InvalidRequest(
            f"headers are a mapping, or pairs of names and values of type str or bytes: {error}"
        ) from None


def _field(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode("latin-1")
    raise TypeError(f"{text!r} is neither")
