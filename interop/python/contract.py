"""The command line and the output lines that all Python peers share (interop/README.md)."""

import argparse
import hashlib
import json
import pathlib
import sys


def parse(description, serves=False, browser=False, datagrams=False):
    """The arguments of `client`, and of `server` and of the echo of datagrams where the peer has them."""
    parser = argparse.ArgumentParser(description=description)
    modes = parser.add_subparsers(dest="mode", required=True)
    client = modes.add_parser("client", help="fetch every URL over one HTTP/3 connection")
    client.add_argument("--ca", required=True, help="trusted root, PEM")
    client.add_argument("--parallel", type=int, default=1, help="requests in flight at once")
    client.add_argument("--output-dir", type=pathlib.Path, required=True, help="bodies go here")
    client.add_argument("--quic-version", type=int, default=1, help="the version of QUIC to begin with")
    client.add_argument("--again", choices=["resumed", "early"], help="a second connection, with the first's session")
    client.add_argument("--update-keys", action="store_true", help="update the keys in the midst of a large body")
    client.add_argument("--move-after", type=int, help="move to another socket after so many bytes")
    client.add_argument("--move-to", default="127.0.0.1", help="local address of that socket")
    client.add_argument("urls", nargs="+", metavar="URL")
    if browser:
        client.add_argument("--spki", required=True, help="base64 SHA-256 of the server's public key")
    if serves:
        server = modes.add_parser("server", help="serve a directory over HTTP/3")
        server.add_argument("--listen", required=True, help="ADDRESS:PORT, port 0 takes a free one")
        server.add_argument("--cert", required=True, help="certificate chain, PEM")
        server.add_argument("--key", required=True, help="private key, PEM")
        server.add_argument("--root", type=pathlib.Path, required=True, help="directory to serve")
        server.add_argument("--retry", action="store_true", help="send a Retry to every new client")
        server.add_argument("--update-keys", action="store_true", help="update the keys in the midst of a body")
    if datagrams:
        client = modes.add_parser("datagram-client", help="send messages, and wait until all have come back")
        client.add_argument("--connect", required=True, help="ADDRESS:PORT")
        client.add_argument("--ca", required=True, help="trusted root, PEM")
        client.add_argument("--messages", type=int, required=True, help="messages to send")
        server = modes.add_parser("datagram-server", help="send back every message")
        server.add_argument("--listen", required=True, help="ADDRESS:PORT, port 0 takes a free one")
        server.add_argument("--cert", required=True, help="certificate chain, PEM")
        server.add_argument("--key", required=True, help="private key, PEM")
    return parser.parse_args()


def report(output_dir, url, protocol, status, body, connection):
    """Stores one body and prints its line; returns whether it came whole by HTTP/3."""
    (output_dir / url.rsplit("/", 1)[1]).write_bytes(body)
    line = {
        "url": url,
        "protocol": protocol,
        "status": status,
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "connection": str(connection),
    }
    print(json.dumps(line), flush=True)
    return protocol == "h3" and status == 200


def finish(results):
    """Ends the program: 0 if there are results and all are good."""
    results = list(results)
    sys.exit(0 if results and all(results) else 1)
