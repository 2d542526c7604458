"""aioquic, a QUIC and HTTP/3 implementation in Python: client and server."""

import asyncio
import socket
import urllib.parse

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, StreamReset
from aioquic.quic.packet import QuicProtocolVersion

import aioquic_datagrams
import contract

# Bytes of a body after which a client updates its keys, if it is to.
UPDATE_KEYS_AFTER = 2_000_000


class Client(QuicConnectionProtocol):
    """Collects one response per stream."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._http = H3Connection(self._quic)
        self._responses = {}
        self._received = 0
        # What is done once so many bytes have arrived.
        self.marks = []

    async def move(self, address):
        """Goes on from another socket under another connection ID."""
        new = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        new.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        new.bind((f"::ffff:{address}", 0))
        old = self._transport
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, sock=new)
        old.close()

    def connection_made(self, transport):
        """Has a socket of its own: the first, or another after a move."""
        moves = self._transport is not None
        super().connection_made(transport)
        if moves:
            # At once: datagrams that arrive before `move` goes on are answered from the new socket already.
            self.change_connection_id()

    async def get(self, url):
        parts = urllib.parse.urlsplit(url)
        stream = self._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        self._responses[stream] = (done, [], bytearray())
        headers = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", parts.netloc.encode()),
            (b":path", parts.path.encode()),
        ]
        self._http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        return await done

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self._fail_all(f"the connection ended: {event.error_code:#x} {event.reason_phrase}")
        elif isinstance(event, StreamReset):
            self._fail(event.stream_id, f"reset with {event.error_code:#x}")
        for http_event in self._http.handle_event(event):
            if isinstance(http_event, (HeadersReceived, DataReceived)):
                self._on_response(http_event)

    def _on_response(self, event):
        if event.stream_id not in self._responses:
            return
        done, headers, body = self._responses[event.stream_id]
        if isinstance(event, HeadersReceived):
            headers.extend(event.headers)
        else:
            body.extend(event.data)
            self._received += len(event.data)
        while self.marks and self._received >= self.marks[0][0]:
            self.marks.pop(0)[1]()
        if event.stream_ended:
            del self._responses[event.stream_id]
            done.set_result((int(dict(headers)[b":status"]), bytes(body)))

    def _fail(self, stream, why):
        if stream in self._responses:
            done, _, _ = self._responses.pop(stream)
            done.set_exception(RuntimeError(why))

    def _fail_all(self, why):
        for stream in list(self._responses):
            self._fail(stream, why)


async def run_client(args):
    tickets, results = [], []
    for number in range(2 if args.again else 1):
        configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
        configuration.load_verify_locations(args.ca)
        if args.quic_version == 2:
            configuration.original_version = QuicProtocolVersion.VERSION_2
            configuration.supported_versions.reverse()
        if number > 0:
            configuration.session_ticket = tickets[-1]
        may_wait = number == 0 or args.again != "early"
        results += await fetch_all(args, configuration, tickets.append, may_wait, str(number))
    return results


async def fetch_all(args, configuration, keep_ticket, may_wait, name):
    """Fetches all URLs over a connection of its own."""
    origin = urllib.parse.urlsplit(args.urls[0])
    room = asyncio.Semaphore(args.parallel)
    async with connect(
        "127.0.0.1" if origin.hostname == "localhost" else origin.hostname,
        origin.port,
        configuration=configure_name(configuration, origin.hostname),
        create_protocol=Client,
        session_ticket_handler=keep_ticket,
        wait_connected=may_wait,
    ) as connection:
        moves = []
        if args.update_keys:
            connection.marks.append((UPDATE_KEYS_AFTER, connection.request_key_update))
        if args.move_after:
            move = lambda: moves.append(asyncio.ensure_future(connection.move(args.move_to)))
            connection.marks.append((args.move_after, move))

        async def fetch(url):
            async with room:
                status, body = await connection.get(url)
            return contract.report(args.output_dir, url, "h3", status, body, name)

        results = await asyncio.gather(*map(fetch, args.urls))
        await asyncio.gather(*moves)
        return results


def configure_name(configuration, name):
    configuration.server_name = name
    return configuration


class Server(QuicConnectionProtocol):
    """Answers GET from a directory."""

    root = None
    updates_keys = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._http = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        if self._http is None:
            return
        for http_event in self._http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                self._respond(http_event)

    def _respond(self, request):
        name = dict(request.headers)[b":path"].decode().removeprefix("/")
        found = name and "/" not in name and (self.root / name).is_file()
        body = (self.root / name).read_bytes() if found else b""
        headers = [
            (b":status", b"200" if found else b"404"),
            (b"content-length", str(len(body)).encode()),
            (b"content-type", b"text/html" if name.endswith(".html") else b"application/octet-stream"),
        ]
        self._http.send_headers(request.stream_id, headers)
        self._http.send_data(request.stream_id, body, end_stream=True)
        self.transmit()
        if self.updates_keys:
            # Of a large body only the first window is out.
            self.request_key_update()


async def run_server(args):
    Server.root, Server.updates_keys = args.root, args.update_keys
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(args.cert, args.key)
    host, port = args.listen.rsplit(":", 1)
    tickets = {}
    server = await serve(
        host.strip("[]"),
        int(port),
        configuration=configuration,
        create_protocol=Server,
        retry=args.retry,
        # Each ticket serves once, as early data require.
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
    )
    # aioquic keeps its socket to itself; there is no public way to ask for the port that 0 became.
    address = server._transport.get_extra_info("sockname")
    print(f"READY {address[0]}:{address[1]}", flush=True)
    await asyncio.Event().wait()


def main():
    args = contract.parse(__doc__, serves=True, datagrams=True)
    if args.mode == "server":
        asyncio.run(run_server(args))
    elif args.mode == "datagram-server":
        asyncio.run(aioquic_datagrams.run_server(args))
    elif args.mode == "datagram-client":
        asyncio.run(aioquic_datagrams.run_client(args))
    else:
        contract.finish(asyncio.run(run_client(args)))


if __name__ == "__main__":
    main()
