"""The transport for httpx."""

import asyncio

import httpx
import posthaste
import pytest


def test_httpx_over_http3(server, edge):
    async def main():
        transport = posthaste.HttpxTransport(verify=server.certificate)
        async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
            response = await client.get(f"{server.url}/hello.txt")
            assert (response.status_code, response.text, response.http_version) == (200, "hello\n", "HTTP/3")
            response = await client.get(f"{server.url}/folder")
            assert (str(response.url), len(response.history)) == (f"{server.url}/folder/", 1)
            async with client.stream("GET", f"{server.url}/large.bin") as response:
                count = 0
                async for chunk in response.aiter_bytes():
                    count += len(chunk)
            assert count == 1 << 25
            response = await client.post(f"{edge.url}/echo", json={"a": 1})
            assert response.json() == {"a": 1}

            async def pieces():
                yield b"one"
                yield b"two"

            response = await client.post(f"{edge.url}/echo", content=pieces())
            assert response.content == b"onetwo"
            response = await client.get(f"{edge.url}/method".replace("https://", "https://name:word@"))
            assert "authorization: Basic" in response.text and "connection: keep-alive" not in response.text
            assert len(transport.client.connections()) == 2

    asyncio.run(main())


def test_a_stream_that_is_left_is_stopped(server):
    async def main():
        transport = posthaste.HttpxTransport(verify=server.certificate, profile="static")
        async with httpx.AsyncClient(transport=transport) as client:
            async with client.stream("GET", f"{server.url}/large.bin?httpx") as response:
                async for _ in response.aiter_bytes():
                    break
            event = await asyncio.to_thread(server.request_event, "/large.bin?httpx")
            assert not event["complete"]

    asyncio.run(main())


def test_exceptions_are_those_of_httpx(server, edge):
    async def main():
        async with httpx.AsyncClient(
            transport=posthaste.HttpxTransport(verify=server.certificate), timeout=0.5
        ) as client:
            with pytest.raises(httpx.ReadTimeout):
                await client.get(f"{edge.url}/hang")
            with pytest.raises(httpx.ReadTimeout):
                await client.get(f"{edge.url}/hold")
            with pytest.raises(httpx.UnsupportedProtocol, match="https://"):
                await client.get("http://localhost/")
        async with httpx.AsyncClient(transport=posthaste.HttpxTransport()) as client:
            with pytest.raises(httpx.ConnectError, match="certificate"):
                await client.get(f"{server.url}/hello.txt")
        with pytest.raises(posthaste.ConfigError, match="max_redirects"):
            posthaste.HttpxTransport(max_redirects=3)

    asyncio.run(main())
