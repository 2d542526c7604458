"""Loops, threads, forks and exits: errors that say what to do, no hang, no crash."""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import warnings

import posthaste
import pytest

#: Of every program: a client `client` that has begun a download in the loop `loop`.
BEGIN = """
import asyncio, os, posthaste, sys, threading, time
url, certificate, name = sys.argv[1:]

async def begin():
    global client, response
    client = posthaste.Client(verify=certificate, profile="static")
    response = await client.get(f"{url}/large.bin?{name}")
    await anext(response.chunks())
"""


def run_program(server, body, code=0, stderr="", name="program"):
    """Runs a program in an interpreter of its own."""
    program = BEGIN + textwrap.dedent(body)
    arguments = [sys.executable, "-X", "faulthandler", "-c", program, server.url, server.certificate, name]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == code, done.stderr
    assert stderr in done.stderr and "Fatal" not in done.stderr and "panicked" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    ("body", "code", "stderr"),
    [
        ("asyncio.run(begin())", 0, ""),
        ("loop = asyncio.new_event_loop(); loop.run_until_complete(begin())", 0, ""),
        ("loop = asyncio.new_event_loop(); loop.run_until_complete(begin()); sys.exit(3)", 3, ""),
        ("loop = asyncio.new_event_loop(); loop.run_until_complete(begin()); os._exit(4)", 4, ""),
        ("async def main():\n    await begin()\n    raise ValueError('mine')\nasyncio.run(main())", 1, "mine"),
        ("async def main():\n    await begin()\n    sys.exit(5)\nasyncio.run(main())", 5, ""),
        (
            "loop = asyncio.new_event_loop(); loop.run_until_complete(begin()); loop.close(); del client, response",
            0,
            "",
        ),
    ],
)
def test_exits_while_transfers_run(server, body, code, stderr):
    run_program(server, body, code, stderr)


def test_an_exit_while_daemon_threads_transfer(server):
    """Loops of other threads go on while the interpreter ends."""
    run_program(
        server,
        """
        async def endless():
            async with posthaste.Client(verify=certificate) as client:
                while True:
                    async for chunk in await client.get(url + "/large.bin"):
                        started.release()

        started = threading.Semaphore(0)
        for _ in range(3):
            threading.Thread(target=lambda: asyncio.run(endless()), daemon=True).start()
        for _ in range(10):
            started.acquire()
        """,
    )


def test_the_server_hears_of_an_exit(server):
    """The connection is closed, not left to time out, even if the client is never dropped."""
    body = """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(begin())
        threading.Thread(target=lambda holds: time.sleep(3600), args=(client,), daemon=True).start()
        """
    run_program(server, body, name="exit")
    event = server.request_event("/large.bin?exit")
    assert "closed by the peer (code 0x100)" in event["error"], event


def test_a_fork_with_a_client(server):
    """The child cannot use the parent's client, but one of its own; the parent's transfer goes on."""
    done = run_program(
        server,
        """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(begin())
        if (child := os.fork()) == 0:
            async def main():
                for use in [client.get(url + "/hello.txt"), response.read(), response.aclose(), client.aclose()]:
                    try:
                        await use
                    except posthaste.ForkError as error:
                        assert "after the fork" in str(error)
                    else:
                        raise AssertionError(use)
                async with posthaste.Client(verify=certificate) as own:
                    return await (await own.get(url + "/hello.txt")).read()
            assert asyncio.run(main()) == b"hello\\n"
            del client, response
            print("child")
            sys.exit(6)
        status = os.waitpid(child, 0)[1]
        assert os.waitstatus_to_exitcode(status) == 6, status
        rest = loop.run_until_complete(response.read())
        assert len(rest) > 1 << 24
        loop.run_until_complete(client.aclose())
        print("parent")
        """,
    )
    assert done.stdout.split() == ["child", "parent"]


def test_a_fork_after_the_import(server):
    run_program(
        server,
        """
        import multiprocessing
        def child(n):
            async def main():
                async with posthaste.Client(verify=certificate) as client:
                    return await (await client.get(url + "/hello.txt")).text()
            return asyncio.run(main())
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(child, range(4)) == ["hello\\n"] * 4
        """,
    )


def test_a_client_belongs_to_one_loop(server):
    client = posthaste.Client(verify=server.certificate)
    with pytest.raises(posthaste.WrongLoopError, match="asyncio.run"):
        client.request("GET", server.url).send(None)

    async def first():
        return await client.get(f"{server.url}/hello.txt")

    response = asyncio.run(first())

    async def second():
        for use in [client.get(f"{server.url}/hello.txt"), response.read(), client.aclose(), client.__aenter__()]:
            with pytest.raises(posthaste.WrongLoopError, match="one client per loop"):
                await use

    asyncio.run(second())
    thread_error = []

    def in_thread():
        try:
            asyncio.run(second())
        except BaseException as error:  # noqa: BLE001
            thread_error.append(error)

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert not thread_error


def test_a_closed_client(server):
    async def main():
        client = posthaste.Client(verify=server.certificate)
        response = await client.get(f"{server.url}/large.bin")
        waiting = asyncio.create_task(client.get(f"{server.url}/hello.txt"))
        await asyncio.sleep(0)
        await client.aclose()
        with pytest.raises(posthaste.ClosedError, match="meanwhile"):
            await waiting
        for use in [client.get(f"{server.url}/hello.txt"), response.read(), client.__aenter__()]:
            with pytest.raises(posthaste.ClosedError, match="make another"):
                await use
        await response.aclose()
        await client.aclose()
        with pytest.raises(posthaste.ClosedError):
            client.hang_up()

    asyncio.run(main())


def test_clients_that_are_dropped_leave_nothing(server):
    """The loop forgets their descriptors before they are closed, so that others can have the numbers."""

    async def main():
        def descriptors():
            return len(os.listdir("/proc/self/fd"))

        async def use():
            client = posthaste.Client(verify=server.certificate)
            assert await (await client.get(f"{server.url}/hello.txt")).read() == b"hello\n"
            return client

        await (await use()).aclose()
        before = descriptors()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(10):
                await use()
                gc.collect()
            assert [warning.category for warning in caught] == [ResourceWarning] * 10
        # Their farewells take a moment.
        while descriptors() > before:
            await asyncio.sleep(0.01)
        await (await use()).aclose()

    asyncio.run(main())
