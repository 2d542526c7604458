"""Requests with content."""

import asyncio

import posthaste
import pytest

PIECE = bytes(range(256)) * 64


def test_contents_of_all_kinds(edge, application):
    async def pieces():
        for n in range(3):
            await asyncio.sleep(0)
            yield PIECE[n:]

    expected = PIECE + PIECE[1:] + PIECE[2:]

    async def main():
        async with posthaste.Client(verify=edge.certificate) as client:
            for content in [
                expected,
                bytearray(expected),
                memoryview(expected),
                pieces(),
                [PIECE, PIECE[1:], PIECE[2:]],
            ]:
                response = await client.post(f"{edge.url}/echo", content=content)
                assert await response.read() == expected
            response = await client.put(f"{edge.url}/echo", content="é")
            assert await response.text() == "é"
            for nothing in [b"", "", [], [b"", b""]]:
                response = await client.post(f"{edge.url}/count", content=nothing)
                assert await response.read() == b"0"
            response = await client.request("POST", f"{edge.url}/count")
            assert await response.read() == b"0"

    asyncio.run(main())


def test_a_large_upload_arrives(edge):
    async def main():
        async with posthaste.Client(verify=edge.certificate) as client:
            response = await client.post(f"{edge.url}/count", content=PIECE * 1024)
            assert await response.json() == len(PIECE) * 1024
            response = await client.post(f"{edge.url}/count", content=(PIECE for _ in range(1024)))
            assert await response.json() == len(PIECE) * 1024

    asyncio.run(main())


def test_both_directions_stream_at_once(edge):
    """A piece is sent only when the one before has come back."""

    async def main():
        echoed: asyncio.Queue[bytes] = asyncio.Queue()

        async def pieces():
            for n in range(20):
                yield b"%02d" % n
                assert await echoed.get() == b"%02d" % n

        async with posthaste.Client(verify=edge.certificate) as client:
            response = await client.post(f"{edge.url}/echo", content=pieces())
            received = b""
            async for chunk in response.chunks(2):
                received += chunk
                echoed.put_nowait(chunk)
            assert received == b"".join(b"%02d" % n for n in range(20))

    asyncio.run(main())


def test_a_source_waits_for_the_server(edge):
    """What is sent ahead has a bound: 256 KiB here, and what the connection and the servers hold."""

    async def main():
        produced = 0

        async def endless():
            nonlocal produced
            while True:
                produced += len(PIECE)
                yield PIECE

        async with posthaste.Client(verify=edge.certificate) as client:
            task = asyncio.create_task(client.post(f"{edge.url}/stall/1", content=endless()))
            before = -1
            while produced != before:
                before = produced
                await asyncio.sleep(0.5)
            assert 0 < produced < 64 << 20
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


def test_a_cancelled_upload_is_reset(edge, application):
    closed = asyncio.Event()

    async def main():
        async def pieces():
            try:
                yield b"begun"
                await asyncio.sleep(3600)
            finally:
                closed.set()

        async with posthaste.Client(verify=edge.certificate) as client:
            task = asyncio.create_task(client.post(f"{edge.url}/hang/upload", content=pieces()))
            await asyncio.to_thread(application.wait_for, "/hang/upload", 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(closed.wait(), 30)
            ended = await asyncio.to_thread(application.end_of, "/hang/upload")
            assert ended == (5, False), "the application sees that it is not whole"
            event = await asyncio.to_thread(edge.request_event, "/hang/upload")
            assert not event["complete"]

    asyncio.run(main())


def test_a_source_that_fails(edge, application):
    class Broken(Exception):
        pass

    async def before():
        yield b"begun"
        await asyncio.to_thread(application.wait_for, "/hang/broken", 5)
        raise Broken("before the answer")

    async def behind(go):
        yield b"begun"
        await go.wait()
        raise Broken("behind its head")

    async def main():
        async with posthaste.Client(verify=edge.certificate) as client:
            with pytest.raises(Broken, match="before the answer"):
                await client.post(f"{edge.url}/hang/broken", content=before())
            assert await asyncio.to_thread(application.end_of, "/hang/broken") == (5, False)
            go = asyncio.Event()
            response = await client.post(f"{edge.url}/echo/broken", content=behind(go))
            go.set()
            with pytest.raises(Broken, match="behind its head"):
                await response.read()
            with pytest.raises(posthaste.InvalidRequest, match="bytes, not of int"):
                await client.post(f"{edge.url}/hang", content=[1, 2])

    asyncio.run(main())


def test_an_answer_before_the_content(edge):
    closed = asyncio.Event()

    async def main():
        async def endless():
            try:
                while True:
                    yield PIECE
            finally:
                closed.set()

        async with posthaste.Client(verify=edge.certificate) as client:
            async with await client.post(f"{edge.url}/early", content=endless()) as response:
                assert response.status == 413
                assert await response.read() == b"full"
            await asyncio.wait_for(closed.wait(), 30)

    asyncio.run(main())
