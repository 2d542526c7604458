"""The echo of messages in DATAGRAM frames over aioquic (interop/peers/src/datagrams.rs)."""

import asyncio
import json

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived

ALPN = ["datagram-echo"]
MAX_FRAME = 65535
# As the peers in Rust: messages under way at once, and their lengths in turn.
UNDER_WAY = 16
LENGTHS = [8, 9, 63, 64, 300, 1000, 1100]


def message(index):
    """The message with this number."""
    head = index.to_bytes(8, "big")
    return head + bytes([index % 256]) * (LENGTHS[index % len(LENGTHS)] - len(head))


class Client(QuicConnectionProtocol):
    """Keeps what comes back until it is asked for."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.echoes = asyncio.Queue()

    def send(self, data):
        self._quic.send_datagram_frame(data)
        self.transmit()

    def quic_event_received(self, event):
        if isinstance(event, DatagramFrameReceived):
            self.echoes.put_nowait(event.data)
        elif isinstance(event, ConnectionTerminated):
            self.echoes.put_nowait(None)


class Server(QuicConnectionProtocol):
    """Sends every message back."""

    def quic_event_received(self, event):
        if isinstance(event, DatagramFrameReceived):
            self._quic.send_datagram_frame(event.data)
            self.transmit()


async def run_client(args):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=ALPN, max_datagram_frame_size=MAX_FRAME)
    configuration.load_verify_locations(args.ca)
    configuration.server_name = "localhost"
    host, port = args.connect.rsplit(":", 1)
    async with connect(host, int(port), configuration=configuration, create_protocol=Client) as connection:
        under_way, sent, received, size = set(), 0, 0, 0
        while received < args.messages:
            while sent < args.messages and len(under_way) < UNDER_WAY:
                connection.send(message(sent))
                under_way.add(sent)
                sent += 1
            echo = await connection.echoes.get()
            if echo is None:
                raise RuntimeError("the connection ended")
            index = int.from_bytes(echo[:8], "big")
            if index not in under_way or echo != message(index):
                raise RuntimeError(f"message {index} came twice or changed")
            under_way.remove(index)
            received += 1
            size += len(echo)
        print(json.dumps({"messages": received, "bytes": size}), flush=True)


async def run_server(args):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=ALPN, max_datagram_frame_size=MAX_FRAME)
    configuration.load_cert_chain(args.cert, args.key)
    host, port = args.listen.rsplit(":", 1)
    await serve(host, int(port), configuration=configuration, create_protocol=Server)
    print(f"READY {args.listen}", flush=True)
    await asyncio.Event().wait()
