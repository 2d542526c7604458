"""A server of another hand: aioquic's HTTP/3."""

import asyncio
from pathlib import Path

import posthaste
import pytest

pytest.importorskip("aioquic")

from aioquic.asyncio import QuicConnectionProtocol, serve  # noqa: E402
from aioquic.h3.connection import H3Connection  # noqa: E402
from aioquic.h3.events import DataReceived, HeadersReceived  # noqa: E402
from aioquic.quic.configuration import QuicConfiguration  # noqa: E402
from aioquic.quic.events import ProtocolNegotiated, StopSendingReceived  # noqa: E402


class Echo(QuicConnectionProtocol):
    """Answers with the request's body, and trailers."""

    stopped: list[int] = []

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.http = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if isinstance(event, StopSendingReceived):
            self.stopped.append(event.error_code)
        for part in self.http.handle_event(event) if self.http else []:
            if isinstance(part, HeadersReceived):
                self.http.send_headers(part.stream_id, [(b":status", b"200"), (b"server", b"aioquic")])
            if isinstance(part, DataReceived) and part.data:
                self.http.send_data(part.stream_id, part.data, end_stream=False)
            if part.stream_ended and not dict(getattr(part, "headers", [])).get(b"x-endless"):
                self.http.send_headers(part.stream_id, [(b"x-end", b"here")], end_stream=True)
        self.transmit()


def test_aioquic(server):
    async def main():
        configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
        identity = Path(server.certificate).with_name("localhost.pem")
        configuration.load_cert_chain(identity, identity)
        running = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Echo)
        port = running._transport.get_extra_info("sockname")[1]
        async with posthaste.Client(verify=server.certificate) as client:
            content = bytes(range(256)) * 1000
            response = await client.post(f"https://127.0.0.1:{port}/", content=content)
            assert (await response.read(), response.headers["server"]) == (content, "aioquic")
            assert response.trailers["X-End"] == "here"
            response = await client.get(f"https://127.0.0.1:{port}/", headers={"x-endless": "1"})
            await response.aclose()
            while not Echo.stopped:
                await asyncio.sleep(0.01)
            assert Echo.stopped == [0x10C], "H3_REQUEST_CANCELLED"
        running.close()

    asyncio.run(main())
