"""What `state` saves a process that comes back to a server that keeps its path histories in tokens.

    posthaste emulate --down rate=50mbit,delay=40ms,queue=1bdp --up delay=40ms \\
        --far 'posthaste serve DIR --listen 0.0.0.0:4477 --profile history --history token --no-access-log' \\
        -- python bench/again.py https://198.18.0.1:4477/FILE 10

Fetches the file in processes of their own, without a state and with one in turn, and prints the median seconds of each. One
more process, not counted, has written the state. Certificates are not checked.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time

import posthaste


async def fetch(url: str, state: str | None) -> float:
    """Seconds of one download, its handshake included."""
    async with posthaste.Client(verify=False, state=state) as client:
        started = time.monotonic()
        response = await client.get(url)
        async for _ in response:
            pass
        return time.monotonic() - started


def in_process(url: str, state: str) -> float:
    """The same in another process; an empty `state` for none."""
    done = subprocess.run([sys.executable, __file__, url, "one", state], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    url, rounds, *rest = sys.argv[1:]
    if rounds == "one":
        print(asyncio.run(fetch(url, rest[0] or None)))
        return
    with tempfile.TemporaryDirectory() as state:
        time.sleep(1)
        in_process(url, state)
        times = [(in_process(url, ""), in_process(url, state)) for _ in range(int(rounds))]
    for name, own in zip(("without state", "with state"), zip(*times, strict=True), strict=True):
        print(f"{name}: {statistics.median(own):.2f} s (median of {len(own)}, {min(own):.2f} to {max(own):.2f})")


if __name__ == "__main__":
    main()
