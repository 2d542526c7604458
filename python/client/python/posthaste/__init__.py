"""An HTTP/3 client for asyncio.

    import asyncio, posthaste

    async def main():
        async with posthaste.Client() as client:
            response = await client.get("https://example.com/")
            print(response.status, await response.text())

    asyncio.run(main())

`posthaste.HttpxTransport` brings it to httpx (`pip install posthaste[httpx]`).
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any

from ._client import Client
from ._errors import (
    BodyTooLarge,
    CertificateError,
    ClosedError,
    ConfigError,
    ConnectError,
    ConnectTimeout,
    Error,
    ForkError,
    InvalidRequest,
    ProtocolError,
    RedirectError,
    StateError,
    TimeoutError,
    TransferError,
    WrongLoopError,
)
from ._native import shut_down as _shut_down
from ._response import Connection, Headers, Response

if TYPE_CHECKING:
    from ._httpx import HttpxTransport as HttpxTransport

__all__ = [
    "BodyTooLarge",
    "CertificateError",
    "Client",
    "ClosedError",
    "ConfigError",
    "ConnectError",
    "ConnectTimeout",
    "Connection",
    "Error",
    "ForkError",
    "Headers",
    "InvalidRequest",
    "ProtocolError",
    "RedirectError",
    "Response",
    "StateError",
    "TimeoutError",
    "TransferError",
    "WrongLoopError",
]

# Servers learn that the connections end, and the thread of the package ends before the interpreter does.
atexit.register(_shut_down)


def __getattr__(name: str) -> Any:
    # httpx is optional, and takes longer to load than everything else here; so this is not in __all__ either.
    if name == "HttpxTransport":
        from ._httpx import HttpxTransport

        return HttpxTransport
    raise AttributeError(f"module 'posthaste' has no attribute {name!r}")
