"""Servers for the tests: `posthaste serve`, and `posthaste edge` before an application in this process."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from application import Application

REPOSITORY = Path(__file__).resolve().parents[3]

#: Seconds that a server may take for what it was asked to do. Only failures wait as long.
PATIENCE = 30


def binary() -> Path:
    """The `posthaste` command: $POSTHASTE, or what `cargo build -p posthaste` has built."""
    if given := os.environ.get("POSTHASTE"):
        return Path(given)
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    found = [path for path in (target / "debug/posthaste", target / "release/posthaste") if path.exists()]
    if not found:
        pytest.exit(f"no posthaste command below {target}: run `cargo build -p posthaste`, or set POSTHASTE", 2)
    return found[0]


@dataclass
class Server:
    """A running `posthaste serve` or `edge`, and what it prints."""

    url: str
    certificate: str
    root: Path
    process: subprocess.Popen[str]
    events: queue.Queue[dict[str, Any]]

    def request_event(self, path: str) -> dict[str, Any]:
        """The line that the server prints at the end of the request for this path."""
        while True:
            event = self.events.get(timeout=PATIENCE)
            if event["event"] == "request" and event["path"] == path:
                return event

    def stop(self) -> None:
        """Ends the server in order."""
        self.process.terminate()
        self.process.wait(PATIENCE)


def start(arguments: list[str], root: Path, certificate: Path | None = None) -> Server:
    """Runs the command until it listens."""
    process = subprocess.Popen([str(binary()), *arguments, "--json"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    listening = json.loads(process.stdout.readline())
    events: queue.Queue[dict[str, Any]] = queue.Queue()

    def read(lines: Any) -> None:
        for line in lines:
            events.put(json.loads(line))

    threading.Thread(target=read, args=(process.stdout,), daemon=True).start()
    url = f"https://{listening['address']}"
    return Server(url, str(certificate or listening["certificate"]), root, process, events)


def serve(root: Path, state: Path, *options: str) -> Server:
    """`posthaste serve` on the files below `root`, at a free port."""
    return start(["serve", str(root), "--listen", "127.0.0.1:0", "--state", str(state), *options], root)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("root")
    (root / "hello.txt").write_text("hello\n")
    (root / "large.bin").write_bytes(bytes(range(256)) * 4096 * 32)
    (root / "folder").mkdir()
    (root / "folder/index.html").write_text("<p>folder</p>")
    server = serve(root, tmp_path_factory.mktemp("state"), "--grace", "1")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def application() -> Iterator[Application]:
    application = Application()
    yield application
    application.stop()


@pytest.fixture(scope="session")
def edge(server: Server, application: Application) -> Iterator[Server]:
    """`posthaste edge` before the application, with the server's certificate."""
    certificate = Path(server.certificate)
    identity = certificate.with_name("localhost.pem")
    edge = start(
        ["edge", "--to", application.url, "--listen", "127.0.0.1:0", "--domain", "localhost", "--compress", "off"]
        + ["--cert", str(identity), "--key", str(identity), "--grace", "1"],
        server.root,
        certificate,
    )
    yield edge
    edge.stop()
