"""A small HTTP/1.1 application behind `posthaste edge`, in a thread of its own, that tells what has become of requests."""

from __future__ import annotations

import asyncio
import queue
import threading
import time


class Application:
    """`/echo` answers with the request's body, as it comes. `/count` reads it whole, and answers with its length.
    `/early` answers before the body. `/hold` begins an answer and never ends it; `/hang` does not begin. `/stall` does
    not read. `/method` tells method and fields. `ended` has `(path, bytes of the request, whole or not)`."""

    def __init__(self) -> None:
        self.ended: queue.Queue[tuple[str, int, bool]] = queue.Queue()
        self.received: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        starting: queue.Queue[int] = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(starting,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{starting.get()}"

    def wait_for(self, path: str, count: int) -> None:
        """Returns when so many bytes of the request for this path have arrived."""
        while self.received.get(path, 0) < count:
            time.sleep(0.01)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def end_of(self, path: str, patience: float = 30) -> tuple[int, bool]:
        """What has become of the request for this path: bytes of its body, and whether it was whole."""
        while True:
            ended, count, is_whole = self.ended.get(timeout=patience)
            if ended == path:
                return count, is_whole

    def _run(self, starting: queue.Queue[int]) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        starting.put(server.sockets[0].getsockname()[1])
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path, count, is_whole = "", 0, False
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ")[1]
            body = Body(reader, head)
            await self._answer(path, head, body, writer)
            is_whole = body.is_whole
            writer.write_eof()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            count = self.received.get(path, 0)
            self.ended.put((path, count, is_whole))
            writer.close()

    async def _answer(self, path: str, head: str, body: Body, writer: asyncio.StreamWriter) -> None:
        ok = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        if path == "/method":
            writer.write(ok + head.encode("latin-1"))
        elif path == "/count":
            async for _ in self._pieces(path, body):
                pass
            writer.write(ok + str(self.received[path]).encode())
        elif path == "/early":
            writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull")
        elif path.startswith("/echo"):
            writer.write(ok)
            async for piece in self._pieces(path, body):
                writer.write(piece)
                await writer.drain()
        elif path.startswith("/stall"):
            await asyncio.sleep(3600)
        else:
            if path.startswith("/hold"):
                writer.write(ok + b"begun")
            async for _ in self._pieces(path, body):
                pass
            # The edge closes its connection when its client is gone.
            await body.reader.read()
            raise ConnectionResetError
        await writer.drain()

    async def _pieces(self, path: str, body: Body):
        self.received[path] = 0
        async for piece in body:
            self.received[path] += len(piece)
            yield piece


class Body:
    """The body of a request."""

    def __init__(self, reader: asyncio.StreamReader, head: str) -> None:
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        self.reader = reader
        self.length = int(fields.get("content-length", 0))
        self.is_chunked = fields.get("transfer-encoding") == "chunked"
        self.is_whole = False

    async def __aiter__(self):
        if self.is_chunked:
            while size := int(await self.reader.readline() or b"-1", 16):
                piece = await self.reader.readexactly(size + 2)
                yield piece[:-2]
            await self.reader.readline()
        else:
            left = self.length
            while left:
                piece = await self.reader.read(min(left, 65536))
                if not piece:
                    raise ConnectionResetError
                left -= len(piece)
                yield piece
        self.is_whole = True
