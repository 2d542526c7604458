"""The clients of compare.py: each fetches or sends an object once, as its own documentation shows, with its own defaults.
Certificates are not checked: the server's is not for the path's address."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit


def run(client: str, url: str, size: int, is_upload: bool) -> dict[str, Any]:
    """Measures one transfer: seconds from the first packet to the last byte, CPU seconds, and the process's peak memory in
    MB. What loading the client costs is not in the first two."""
    transfer = CLIENTS[client]()
    content = bytes(size) if is_upload else None
    cpu_before, started = cpu(), time.monotonic()
    count = asyncio.run(transfer(f"{url}/object", content))
    seconds, cpu_seconds = time.monotonic() - started, cpu() - cpu_before
    if count != size:
        raise RuntimeError(f"{client}: {count} bytes instead of {size}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"client": client, "time": round(seconds, 4), "cpu": round(cpu_seconds, 4), "memory": round(memory, 1)}


def cpu() -> float:
    """CPU seconds of all threads of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


#: Takes an URL, and the content if there is one to send; gives the bytes that were transferred.
Transfer = Callable[[str, "bytes | None"], Awaitable[int]]


def posthaste() -> Transfer:
    """This package."""
    import posthaste

    async def transfer(url: str, content: bytes | None) -> int:
        async with posthaste.Client(verify=False) as client:
            if content is not None:
                return int(await (await client.post(url, content=content)).read())
            response = await client.get(url)
            return sum([len(chunk) async for chunk in response])

    return transfer


def niquests() -> Transfer:
    """niquests, whose HTTP/3 is qh3's: Rust below Python."""
    import warnings

    import niquests

    warnings.simplefilter("ignore")

    async def transfer(url: str, content: bytes | None) -> int:
        async with niquests.AsyncSession(disable_http1=True, disable_http2=True) as session:
            if content is not None:
                response = await session.post(url, data=content, verify=False)
                assert response.http_version == 30
                return int(response.text)
            response = await session.get(url, verify=False, stream=True)
            assert response.http_version == 30
            return sum([len(chunk) async for chunk in await response.iter_content(256 * 1024)])

    return transfer


def aioquic() -> Transfer:
    """aioquic: Python, with its cryptography in C."""
    import ssl

    from aioquic.asyncio.client import connect
    from aioquic.asyncio.protocol import QuicConnectionProtocol
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Protocol(QuicConnectionProtocol):
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **settings)
            self.http = H3Connection(self._quic)
            self.count = 0
            self.text = b""
            self.done = asyncio.get_running_loop().create_future()

        def quic_event_received(self, event: Any) -> None:
            for part in self.http.handle_event(event):
                if isinstance(part, DataReceived):
                    self.count += len(part.data)
                    self.text = part.data or self.text
                if getattr(part, "stream_ended", False) and not self.done.done():
                    self.done.set_result(None)

    async def transfer(url: str, content: bytes | None) -> int:
        target = urlsplit(url)
        configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
        connecting = connect(target.hostname, target.port, configuration=configuration, create_protocol=Protocol)
        async with connecting as protocol:
            stream = protocol._quic.get_next_available_stream_id()
            head = [
                (b":method", b"GET" if content is None else b"POST"),
                (b":scheme", b"https"),
                (b":authority", target.netloc.encode()),
                (b":path", target.path.encode()),
            ]
            protocol.http.send_headers(stream, head, end_stream=content is None)
            if content is not None:
                protocol.http.send_data(stream, content, end_stream=True)
            protocol.transmit()
            await protocol.done
            return protocol.count if content is None else int(protocol.text)

    return transfer


#: By name.
CLIENTS: dict[str, Callable[[], Transfer]] = {"posthaste": posthaste, "aioquic": aioquic, "niquests": niquests}
