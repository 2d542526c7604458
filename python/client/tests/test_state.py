"""What a client keeps between processes."""

import asyncio
import os
import stat

import posthaste
import pytest
from conftest import serve


def fetch(server, **settings):
    async def main():
        async with posthaste.Client(verify=server.certificate, **settings) as client:
            response = await client.get(f"{server.url}/hello.txt")
            assert await response.read() == b"hello\n"
            return client.connections()[0]

    return asyncio.run(main())


def test_an_address_token_spares_a_round_trip(server, tmp_path):
    """A server that sends Retry to all clients without a token: with one, the client sends fewer bytes."""
    retry = serve(server.root, tmp_path / "server", "--retry", "always")
    state = tmp_path / "deep/state"
    first = fetch(retry, state=state)
    tokens = state / "address-tokens"
    assert stat.S_IMODE(os.stat(tokens).st_mode) == 0o600 and tokens.read_text().count("\n") >= 1
    second = fetch(retry, state=state)
    assert second.packets_sent < first.packets_sent
    retry.stop()


def test_a_state_that_cannot_be_kept(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(posthaste.ConfigError, match="cannot keep address tokens in .*\n.*state=DIRECTORY"):
        posthaste.Client(verify=server.certificate, state=tmp_path / "file")
    state = tmp_path / "state"

    async def main():
        client = posthaste.Client(verify=server.certificate, state=state)
        await client.get(f"{server.url}/hello.txt")
        state.write_text("")
        with pytest.raises(posthaste.ConfigError, match="cannot keep address tokens"):
            await client.aclose()
        await client.aclose()

    asyncio.run(main())


def test_nonsense_in_the_file_is_skipped(server, tmp_path):
    (tmp_path / "address-tokens").write_bytes(b"\xff\0nonsense\nlocalhost x y z\n")
    fetch(server, state=tmp_path)
