"""A server of another hand: aioquic's HTTP/3."""

import asyncio
import gc
from pathlib import Path
from typing import ClassVar

import posthaste
import pytest

pytest.importorskip("aioquic")

from aioquic.asyncio import QuicConnectionProtocol, serve  # noqa: E402
from aioquic.h3.connection import H3Connection  # noqa: E402
from aioquic.h3.events import DataReceived, HeadersReceived  # noqa: E402
from aioquic.quic.configuration import QuicConfiguration  # noqa: E402
from aioquic.quic.events import ProtocolNegotiated, StopSendingReceived  # noqa: E402


class Echo(QuicConnectionProtocol):
    """Answers with the request's body, and trailers; as the field `x-how` says, without an end (`endless`), or with a whole
    answer before the body (`early`)."""

    stopped: ClassVar[list[int]] = []
    received: ClassVar[dict[str, int]] = {}

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.http = None
        self.how = {}

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if isinstance(event, StopSendingReceived):
            self.stopped.append(event.error_code)
        for part in self.http.handle_event(event) if self.http else []:
            if isinstance(part, HeadersReceived):
                self.how[part.stream_id] = dict(part.headers).get(b"x-how", b"").decode()
                head = [(b":status", b"200"), (b"server", b"aioquic")]
                self.http.send_headers(part.stream_id, head, end_stream=self.how[part.stream_id] == "early")
            how = self.how[part.stream_id]
            if isinstance(part, DataReceived):
                self.received[how] = self.received.get(how, 0) + len(part.data)
                if part.data and how != "early":
                    self.http.send_data(part.stream_id, part.data, end_stream=False)
            if part.stream_ended and not how:
                self.http.send_headers(part.stream_id, [(b"x-end", b"here")], end_stream=True)
        self.transmit()


def with_aioquic(server, main):
    """Runs `main` with the URL of a server, and a client."""

    async def both():
        configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
        identity = Path(server.certificate).with_name("localhost.pem")
        configuration.load_cert_chain(identity, identity)
        running = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Echo)
        port = running._transport.get_extra_info("sockname")[1]
        async with posthaste.Client(verify=server.certificate) as client:
            await main(f"https://127.0.0.1:{port}/", client)
        running.close()

    asyncio.run(both())


def test_aioquic(server):
    async def main(url, client):
        content = bytes(range(256)) * 1000
        response = await client.post(url, content=content)
        assert (await response.read(), response.headers["server"]) == (content, "aioquic")
        assert response.trailers["X-End"] == "here"
        response = await client.get(url, headers={"x-how": "endless"})
        await response.aclose()
        while not Echo.stopped:
            await asyncio.sleep(0.01)
        assert Echo.stopped == [0x10C], "H3_REQUEST_CANCELLED"

    with_aioquic(server, main)


def test_an_upload_goes_on_behind_a_whole_response(server):
    """RFC 9114 section 4.1: a response may be complete before the request is; only the server can say that it has enough."""

    async def main(url, client):
        async def pieces():
            for _ in range(100):
                await asyncio.sleep(0.001)
                yield bytes(1000)

        response = await client.post(url, content=pieces(), headers={"x-how": "early"})
        assert await response.read() == b""
        del response
        gc.collect()
        while Echo.received.get("early", 0) < 100_000:
            await asyncio.sleep(0.01)

    with_aioquic(server, main)
