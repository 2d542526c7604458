"""Bodies of requests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Any

from ._errors import InvalidRequest

if TYPE_CHECKING:
    from ._loop import Operations
    from ._native import Outgoing

#: What a request may carry: everything at once, or pieces as they come.
Content = bytes | bytearray | memoryview | str | Iterable[bytes] | AsyncIterable[bytes]


def whole(content: Content | None) -> bytes | None:
    """The content, if it is there at once.

    Raises:
        InvalidRequest: it cannot be sent.
    """
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytearray, memoryview)):
        return bytes(content)
    raise InvalidRequest(
        f"content is bytes, a str, or an iterable or asynchronous iterable of bytes, not {type(content).__name__}"
    )


def is_stream(content: Content | None) -> bool:
    """Whether the content comes in pieces."""
    if isinstance(content, (bytes, bytearray, memoryview, str)):
        return False
    return isinstance(content, (AsyncIterable, Iterable))


class Upload:
    """Sends the pieces of a body as fast as the server takes them; at most 256 KiB and one piece wait."""

    def __init__(self, operations: Operations, native: Outgoing, content: Any) -> None:
        self._operations = operations
        self._native = native
        self._error: BaseException | None = None
        self.task = operations.spawn(self._run(content))

    def check(self) -> None:
        """Raises the error of the content's source, if it has failed: whatever the server says then, the request is not
        the one that was meant."""
        if self._error is not None:
            raise self._error

    async def _run(self, content: Any) -> None:
        try:
            if isinstance(content, AsyncIterable):
                await self._send_all(content)
            else:
                await self._send_all(_asynchronous(content))
        except Exception as error:
            self._error = error
            self._native.fail(f"{type(error).__name__}: {error}")

    async def _send_all(self, content: AsyncIterable[bytes]) -> None:
        pieces = content.__aiter__()
        try:
            async for piece in pieces:
                if not isinstance(piece, bytes):
                    piece = _bytes(piece)
                if not self._native.send(piece):
                    return
                if (operation := self._native.room()) is not None:
                    await self._operations.wait(operation)
            self._native.finish()
        finally:
            if (close := getattr(pieces, "aclose", None)) is not None:
                with contextlib.suppress(Exception):
                    await close()


def _bytes(piece: Any) -> bytes:
    if isinstance(piece, (bytearray, memoryview)):
        return bytes(piece)
    raise InvalidRequest(f"content consists of bytes, not of {type(piece).__name__}")


async def _asynchronous(content: Iterable[bytes]) -> Any:
    for piece in content:
        yield piece
