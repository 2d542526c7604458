"""A transport for httpx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from types import TracebackType
from typing import Any, TypeVar

try:
    import httpx
except ImportError as error:
    raise ImportError("posthaste.HttpxTransport needs httpx: pip install 'posthaste[httpx]'") from error

from . import _errors
from ._client import Client
from ._response import Response

#: Fields that httpx sets for HTTP/1.1; the authority of HTTP/3 is the URL's.
NOT_SENT = frozenset({b"connection", b"host", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})

#: What the exceptions of this package are for httpx; the first that fits.
CLASSES: list[tuple[type[_errors.Error], type[httpx.TransportError]]] = [
    (_errors.ConnectTimeout, httpx.ConnectTimeout),
    (_errors.ConnectError, httpx.ConnectError),
    (_errors.TimeoutError, httpx.ReadTimeout),
    (_errors.ProtocolError, httpx.RemoteProtocolError),
    (_errors.TransferError, httpx.ReadError),
    (_errors.InvalidRequest, httpx.UnsupportedProtocol),
]

T = TypeVar("T")


class HttpxTransport(httpx.AsyncBaseTransport):
    """Sends the requests of an `httpx.AsyncClient` over HTTP/3.

        async with httpx.AsyncClient(transport=posthaste.HttpxTransport()) as client:
            response = await client.get("https://example.com/")

    httpx follows redirects, keeps cookies and decodes contents. Of its timeouts, `connect` and `read` together bound the
    time to a response's head, `read` that between its bytes. The port's TCP side is never asked: a server without HTTP/3
    gives `httpx.ConnectError` or `httpx.ConnectTimeout`.

    Args:
        settings: Those of `posthaste.Client`, except `max_redirects`.
    """

    def __init__(self, **settings: Any) -> None:
        if "max_redirects" in settings:
            raise _errors.ConfigError("max_redirects is a setting of httpx.AsyncClient")
        self._client = Client(max_redirects=0, **settings)

    @property
    def client(self) -> Client:
        """The client below, for its connections."""
        return self._client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        timeouts = request.extensions.get("timeout", {})
        connect, read = timeouts.get("connect"), timeouts.get("read")
        head = connect + read if connect is not None and read is not None else None
        sending = self._client.request(
            request.method,
            str(request.url.copy_with(username=None, password=None)),
            headers=[(name, value) for name, value in request.headers.raw if name.lower() not in NOT_SENT],
            content=_content(request),
        )
        response = await _translated(sending, head)
        return httpx.Response(
            response.status,
            headers=response.headers.raw,
            stream=_Stream(response, read),
            extensions={"http_version": b"HTTP/3"},
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def __aenter__(self) -> HttpxTransport:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()


def _content(request: httpx.Request) -> Any:
    if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
        return None
    try:
        return request.content
    except httpx.RequestNotRead:
        return request.stream


class _Stream(httpx.AsyncByteStream):
    """The body of a response for httpx."""

    def __init__(self, response: Response, timeout: float | None) -> None:
        self._response = response
        self._timeout = timeout

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._response.chunks()
        while (piece := await _translated(anext(pieces, None), self._timeout)) is not None:
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


async def _translated(awaitable: Awaitable[T], timeout: float | None) -> T:
    try:
        return await asyncio.wait_for(awaitable, timeout)
    except _errors.StateError:
        raise
    except _errors.Error as error:
        for own, theirs in CLASSES:
            if isinstance(error, own):
                raise theirs(str(error)) from error
        raise
    except asyncio.TimeoutError as error:
        raise httpx.ReadTimeout(f"nothing came within {timeout} s") from error
