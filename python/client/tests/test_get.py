"""Requests without content."""

import asyncio
import hashlib

import posthaste
import pytest


def run(main):
    return asyncio.run(main)


def test_a_file_arrives(server):
    async def main():
        async with posthaste.Client(verify=server.certificate) as client:
            response = await client.get(f"{server.url}/hello.txt")
            assert (response.status, response.is_success) == (200, True)
            assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
            assert (response.content_length, response.url) == (6, f"{server.url}/hello.txt")
            assert await response.read() == b"hello\n"
            assert await response.read() == b"", "it comes once"
            assert response.connection.origin == server.url
            assert 0 < response.first_byte < 60

    run(main())


def test_a_large_file_arrives_in_pieces_and_whole(server):
    async def main():
        expected = (server.root / "large.bin").read_bytes()
        async with posthaste.Client(verify=server.certificate) as client:
            response = await client.get(f"{server.url}/large.bin")
            digest, sizes = hashlib.sha256(), []
            async for chunk in response:
                digest.update(chunk)
                sizes.append(len(chunk))
            assert digest.digest() == hashlib.sha256(expected).digest()
            assert max(sizes) <= 256 * 1024
            response = await client.get(f"{server.url}/large.bin")
            assert [len(await anext(response.chunks(10))) for _ in range(3)] == [10] * 3
            assert await response.read() == expected[30:]

    run(main())


def test_parallel_requests_share_a_connection(server):
    async def main():
        async with posthaste.Client(verify=server.certificate) as client:
            responses = await asyncio.gather(*(client.get(f"{server.url}/hello.txt?{n}") for n in range(100)))
            assert await asyncio.gather(*(response.read() for response in responses)) == [b"hello\n"] * 100
            assert len(client.connections()) == 1

    run(main())


def test_methods_fields_and_redirects(server, edge):
    async def main():
        async with posthaste.Client(verify=server.certificate) as client:
            response = await client.head(f"{server.url}/hello.txt")
            assert (response.headers["content-length"], await response.read()) == ("6", b"")
            response = await client.get(f"{server.url}/hello.txt", headers={"Range": "bytes=1-2"})
            assert (response.status, await response.read()) == (206, b"el")
            response = await client.get(f"{server.url}/folder")
            assert response.url == f"{server.url}/folder/"
            assert "folder" in await response.text()
            response = await client.get(f"{server.url}/missing")
            assert (response.status, response.is_success) == (404, False)
            fields = [("x-one", "1"), (b"X-One", b"2"), ("x-latin", "é")]
            response = await client.request("OPTIONS", f"{edge.url}/method", headers=fields)
            text = await response.text("latin-1")
            assert text.startswith("OPTIONS /method")
            assert "x-one: 1" in text and "x-one: 2" in text and "x-latin: é" in text
        async with posthaste.Client(verify=server.certificate, max_redirects=0) as client:
            response = await client.get(f"{server.url}/folder")
            assert (response.status, response.headers["location"]) == (301, "/folder/")

    run(main())


def test_read_has_a_limit(server):
    async def main():
        async with posthaste.Client(verify=server.certificate) as client:
            response = await client.get(f"{server.url}/large.bin")
            with pytest.raises(posthaste.BodyTooLarge, match="limit=BYTES"):
                await response.read(limit=3_000_000)
            assert len(await response.read(limit=1 << 26)) == 1 << 25, "nothing is lost by it"
            response = await client.get(f"{server.url}/hello.txt")
            assert await response.read(limit=6) == b"hello\n"

    run(main())


def test_two_tasks_cannot_read_one_response(edge):
    async def main():
        async with posthaste.Client(verify=edge.certificate) as client:
            response = await client.get(f"{edge.url}/hold/two")
            assert await anext(response.chunks()) == b"begun"
            first = asyncio.create_task(response.read())
            await asyncio.sleep(0)
            with pytest.raises(posthaste.StateError, match="another task"):
                await response.read()
            with pytest.raises(posthaste.StateError, match="another task"):
                await anext(response.chunks())
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first

    run(main())


def test_the_server_waits_for_a_program_that_does_not_read(server):
    """What is read ahead has a bound: 1 MiB, and what flow control has let through."""

    async def main():
        async with posthaste.Client(verify=server.certificate, profile="static") as client:
            response = await client.get(f"{server.url}/large.bin")
            before = -1
            while (received := client.connections()[0].bytes_received) != before:
                before = received
                await asyncio.sleep(0.5)
            assert 1 << 20 <= received < 3 << 20
            assert len(await response.read()) == 1 << 25

    run(main())


def test_bytes_move_while_python_computes(server):
    """The interpreter's lock is never given up here, and the event loop does not run."""
    import sys
    import time

    async def main():
        async with posthaste.Client(verify=server.certificate) as client:
            response = await client.get(f"{server.url}/large.bin")
            interval = sys.getswitchinterval()
            sys.setswitchinterval(1000)
            try:
                deadline = time.monotonic() + 30
                while client.connections()[0].bytes_received < 1 << 20:
                    assert time.monotonic() < deadline, client.connections()
            finally:
                sys.setswitchinterval(interval)
            await response.aclose()

    run(main())


def test_sessions_resume_within_a_process(server):
    async def main():
        async with posthaste.Client(verify=server.certificate) as client:
            await (await client.get(f"{server.url}/hello.txt")).read()
            client.hang_up()
            response = await client.get(f"{server.url}/hello.txt")
            assert await response.read() == b"hello\n"
            first, second = client.connections()
            assert (first.is_resumed, second.is_resumed) == (False, True)
            assert second.early_data == "accepted"
        async with posthaste.Client(verify=server.certificate, early_data=False) as client:
            await (await client.get(f"{server.url}/hello.txt")).read()
            client.hang_up()
            await (await client.get(f"{server.url}/hello.txt")).read()
            assert client.connections()[1].early_data == "none"

    run(main())
