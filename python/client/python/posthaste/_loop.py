"""Operations of the compiled half as futures of one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import warnings
import weakref
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from ._errors import ClosedError, WrongLoopError

if TYPE_CHECKING:
    from ._native import Session


class Operations:
    """Waits for the operations of a session. It belongs to the event loop that uses it first."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._process = os.getpid()
        self.is_closed = False

    def check(self) -> asyncio.AbstractEventLoop:
        """The running loop, if the session may be used in it.

        Raises:
            ClosedError: the client is closed.
            WrongLoopError: another loop runs, or none.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise WrongLoopError("no event loop of asyncio is running; use `asyncio.run(main())`") from None
        # Before anything else: in a forked process this raises.
        descriptor = self._session.fileno()
        if self.is_closed:
            raise ClosedError("the client is closed; make another")
        if self._loop is None:
            try:
                loop.add_reader(descriptor, _deliver, weakref.ref(self))
            except NotImplementedError:
                raise WrongLoopError(
                    "this event loop cannot watch sockets (add_reader); use asyncio.SelectorEventLoop"
                ) from None
            self._loop = loop
        elif self._loop is not loop:
            raise WrongLoopError(
                "the client belongs to another event loop, in which it was used before; make one client per loop"
            )
        return loop

    async def wait(self, operation: int) -> Any:
        """What the operation brings. If this is cancelled, so is the operation."""
        future = self.check().create_future()
        self._waiting[operation] = future
        try:
            return await future
        except asyncio.CancelledError:
            self._session.cancel(operation)
            raise
        finally:
            self._waiting.pop(operation, None)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a coroutine until its end, or the session's."""
        task = self.check().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Ends all operations, and the session's connections."""
        loop = self.check()
        self.is_closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ClosedError("the client was closed meanwhile"))
        self._waiting.clear()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        closed = loop.create_future()
        self._waiting[self._session.close()] = closed
        try:
            await closed
        finally:
            loop.remove_reader(self._session.fileno())

    def deliver(self) -> None:
        """Hands what has completed to those who wait."""
        for operation, value in self._session.completed():
            future = self._waiting.pop(operation, None)
            # Nobody waits for what was cancelled; a response that is dropped here is given up.
            if future is None or future.done():
                continue
            if isinstance(value, BaseException):
                future.set_exception(value)
            else:
                future.set_result(value)

    def __del__(self) -> None:
        loop = self._loop
        if self.is_closed or loop is None or loop.is_closed() or self._process != os.getpid():
            return
        warnings.warn("a posthaste.Client was not closed; use `async with` or aclose()", ResourceWarning, stacklevel=2)
        # The loop must forget the descriptor before it is closed, so the session lives until then. The loop may be
        # another thread's, or close just now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_forget, loop, self._session)


def _deliver(operations: weakref.ref[Operations]) -> None:
    # What the loop holds must not keep a client alive that its program has dropped.
    if (alive := operations()) is not None:
        alive.deliver()


def _forget(loop: asyncio.AbstractEventLoop, session: Session) -> None:
    loop.remove_reader(session.fileno())
