"""A worker process: orders on stdin, results on stdout. ``python -m posthaste_lab._worker``; see ``_local``.

A line of JSON each way; after a worker's line come the bytes of its results. The end of stdin ends the process at once,
whatever it is doing: its owner has gone.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import Any, BinaryIO


def _read(orders: BinaryIO, lines: queue.SimpleQueue[bytes]) -> None:
    for line in orders:
        lines.put(line)
    os._exit(0)


def _answer(line: bytes) -> tuple[dict[str, Any], list[bytes]]:
    from . import _chunk

    try:
        done = _chunk.make(json.loads(line))
    except Exception as error:
        where = {"line": getattr(error, "line", None), "key": getattr(error, "key", None)}
        return {"error": {"class": type(error).__name__, "message": str(error), **where}}, []
    results = done["results"]
    return {"sizes": list(map(len, results)), "seconds": done["seconds"], "pid": done["pid"]}, results


def main() -> None:
    # An interrupt in a terminal is for the owner, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whatever prints must not print among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, lines), daemon=True).start()
    while True:
        head, results = _answer(lines.get())
        answers.write(json.dumps(head).encode() + b"\n")
        answers.writelines(results)
        answers.flush()


if __name__ == "__main__":
    main()
