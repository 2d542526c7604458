"""Responses as they arrive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._errors import BodyTooLarge, StateError

if TYPE_CHECKING:
    from ._content import Upload
    from ._loop import Operations
    from ._native import Incoming

#: Bytes of the largest piece of a body that iteration gives.
CHUNK = 256 * 1024

#: Bytes of the largest body that `Response.read` takes unless it is told otherwise.
MAX_BODY = 64 << 20


@dataclass(frozen=True)
class Connection:
    """A connection that a client has made. Times are in seconds."""

    #: Its place among the client's connections, from 0.
    index: int
    #: Whose it is, as `https://host:port`.
    origin: str
    #: The server's address and port.
    remote: str
    #: Time that the name took to resolve.
    resolution: float
    #: Time of the handshake; None until it is complete.
    handshake: float | None
    #: Whether it went on from an earlier connection's TLS session.
    is_resumed: bool
    #: What became of requests sent before the handshake was complete (0-RTT): "none", "accepted" or "rejected"; None
    #: until that is known.
    early_data: str | None
    #: Smoothed round-trip time; None before the first sample.
    rtt: float | None
    #: Least round-trip time seen.
    min_rtt: float | None
    #: Bytes of UDP payload sent.
    bytes_sent: int
    #: Bytes of UDP payload received.
    bytes_received: int
    #: QUIC packets sent.
    packets_sent: int
    #: Of these, packets declared lost.
    packets_lost: int
    #: Moves to another network path.
    moves: int


class Headers(Mapping[str, str]):
    """Header fields: a mapping whose names have no case. Values of fields that occur several times are joined by commas;
    `get_list` has them apart, `raw` has everything as it came."""

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self.raw = raw
        self._all: dict[str, list[str]] = {}
        for name, value in raw:
            self._all.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))

    def __getitem__(self, name: str) -> str:
        return ", ".join(self._all[name.lower()])

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._all

    def get_list(self, name: str) -> list[str]:
        """The values of this field, each as it came."""
        return list(self._all.get(name.lower(), []))

    def __repr__(self) -> str:
        return f"Headers({self.raw!r})"


class Response:
    """A response of which the head has arrived. The body comes by `read()` or by `async for chunk in response`, once.

    At most 1 MiB of it is read ahead; then the server has to wait. A response that is closed, or dropped, before its
    body is complete tells the server to stop.
    """

    def __init__(self, native: Incoming, operations: Operations, upload: Upload | None) -> None:
        self._native = native
        self._operations = operations
        self._upload = upload
        self._is_waiting = False
        #: The status, 200 to 599.
        self.status: int = native.status
        #: Where it came from, behind redirects.
        self.url: str = native.url
        #: The header fields.
        self.headers = Headers(native.headers)
        #: Bytes of the body, if the server announces them.
        self.content_length: int | None = native.content_length
        #: Seconds from the request to the head of the response.
        self.first_byte: float = native.first_byte

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def connection(self) -> Connection:
        """The connection, as it was when the head arrived."""
        return Connection(**self._native.connection)

    @property
    def trailers(self) -> Headers:
        """The trailers (RFC 9110 section 6.5); empty before the body is complete."""
        return Headers(self._native.trailers)

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """The whole body, or what is left of it.

        Args:
            limit: Bytes that it may have. Default 64 MiB.

        Raises:
            BodyTooLarge: it has more.
            TransferError: it does not arrive whole.
            TimeoutError: its next bytes did not come in time.
        """
        if limit < 0:
            raise ValueError(f"limit is a number of bytes, not {limit}")
        try:
            while isinstance(data := self._look(self._native.read_all, limit), int):
                await self._wait(data)
            return data or b""
        except (asyncio.CancelledError, BodyTooLarge):
            self._native.restrain()
            raise

    async def text(self, encoding: str = "utf-8", limit: int = MAX_BODY) -> str:
        """The whole body as text; as `read`."""
        return (await self.read(limit)).decode(encoding)

    async def json(self, limit: int = MAX_BODY) -> Any:
        """What the body says in JSON; as `read`."""
        return json.loads(await self.read(limit))

    async def chunks(self, max: int = CHUNK) -> AsyncIterator[bytes]:
        """The body in pieces, as it arrives.

        Args:
            max: Bytes of a piece at most. Default 256 KiB.

        Raises:
            TransferError: it does not arrive whole.
            TimeoutError: its next bytes did not come in time.
        """
        if max <= 0:
            raise ValueError(f"max is a number of bytes above 0, not {max}")
        while True:
            data = self._look(self._native.read, max)
            if data is None:
                return
            if isinstance(data, int):
                await self._wait(data)
            else:
                yield data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.chunks()

    def _look(self, look: Callable[[int], bytes | int | None], size: int) -> bytes | int | None:
        self._operations.check()
        if self._is_waiting:
            raise StateError("another task is reading this response; a body comes once")
        if self._upload is not None:
            self._upload.check()
        return look(size)

    async def _wait(self, operation: int) -> None:
        self._is_waiting = True
        try:
            await self._operations.wait(operation)
        finally:
            self._is_waiting = False

    async def aclose(self) -> None:
        """Gives up what has not arrived."""
        self._native.give_up()

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<posthaste.Response {self.status} {self.url}>"
