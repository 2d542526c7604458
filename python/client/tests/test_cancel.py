"""Cancelled and dropped requests: the server sees it."""

import asyncio
import gc

import posthaste
import pytest


def test_a_cancelled_request_is_reset(edge, application):
    async def main():
        async with posthaste.Client(verify=edge.certificate) as client:
            task = asyncio.create_task(client.get(f"{edge.url}/hang/cancelled"))
            # By now the request is there: another, sent behind it, is answered.
            await asyncio.sleep(0)
            await (await client.get(f"{edge.url}/method")).read()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            event = await asyncio.to_thread(edge.request_event, "/hang/cancelled")
            assert not event["complete"] and "H3_REQUEST_CANCELLED" in event["error"]

    asyncio.run(main())


@pytest.mark.parametrize("how", ["cancel", "close", "drop", "with", "timeout"])
def test_a_response_that_is_given_up_is_stopped(server, how):
    async def main():
        async with posthaste.Client(verify=server.certificate, profile="static") as client:
            path = f"/large.bin?{how}"
            response = await client.get(server.url + path)
            if how == "cancel":
                task = asyncio.create_task(response.read())
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                # Its traceback holds the response.
                del task
                # The response itself can still be read.
                assert len(await anext(response.chunks())) > 0
            if how == "timeout":
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(forever(response), 0.2)
            if how == "with":
                async with response:
                    assert await anext(response.chunks())
            if how == "close":
                await response.aclose()
                with pytest.raises(posthaste.ClosedError, match="closed before"):
                    await response.read()
            del response
            gc.collect()
            event = await asyncio.to_thread(server.request_event, path)
            assert not event["complete"] and "H3_REQUEST_CANCELLED" in event["error"], event
            assert (await client.get(f"{server.url}/hello.txt")).status == 200, "the connection goes on"

    asyncio.run(main())


async def forever(response):
    await anext(response.chunks())
    await asyncio.sleep(3600)


def test_a_cancelled_handshake_leaves_the_client_usable(server):
    async def main():
        async with posthaste.Client(verify=server.certificate) as client:
            for _ in range(20):
                task = asyncio.create_task(client.get(f"{server.url}/hello.txt"))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            response = await client.get(f"{server.url}/hello.txt")
            assert await response.read() == b"hello\n"

    asyncio.run(main())
