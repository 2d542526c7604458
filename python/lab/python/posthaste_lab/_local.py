"""Workers on this machine: processes of their own, without ``multiprocessing`` and so without ``fork``."""

from __future__ import annotations

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
import weakref
from typing import IO, Any

from . import _errors
from ._backend import Backend, Failed, Lost, Outcome
from ._chunk import Done, Order


class Local(Backend):
    """``slots`` worker processes; one that dies is replaced when there is work for it."""

    def __init__(self, slots: int, environment: dict[str, str] | None = None) -> None:
        if not sys.executable:
            raise _errors.RunError("there is no Python interpreter to start workers with: sys.executable is empty")
        self.slots = slots
        self._owner = os.getpid()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        path = os.pathsep.join(entry for entry in sys.path if entry)
        environment = {**os.environ, "PYTHONPATH": path, **(environment or {})}
        self._workers = [_Worker(self._outcomes, environment) for _ in range(slots)]
        _live.add(self)

    @property
    def pids(self) -> list[int]:
        """Processes that have been started and not yet ended."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]

    def submit(self, order: Order) -> None:
        next(worker for worker in self._workers if worker.is_idle).give(order)

    def wait(self, seconds: float) -> Outcome | None:
        try:
            return self._outcomes.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        # A forked child has these objects, but not these processes.
        if os.getpid() == self._owner:
            for worker in self._workers:
                worker.end()
        _live.discard(self)


class _Worker:
    """A process, and the thread that talks to it."""

    def __init__(self, outcomes: queue.SimpleQueue[Outcome], environment: dict[str, str]) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.is_idle = True
        self._environment = environment
        self._outcomes = outcomes
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_ended = False
        threading.Thread(target=self._serve, name="posthaste-lab worker", daemon=True).start()

    def give(self, order: Order) -> None:
        self.is_idle = False
        self._orders.put(order)

    def end(self) -> None:
        with self._lock:
            self._is_ended = True
            process = self.process
        self._orders.put(None)
        if process is not None:
            process.kill()
            process.wait()

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                outcome = self._carry_out(order)
            except Exception as error:  # Whatever it is, the sweep must learn of it.
                outcome = (order, Failed(error))
            self.is_idle = True
            self._outcomes.put(outcome)

    def _carry_out(self, order: Order) -> Outcome:
        process = self._started()
        if process is None:
            return order, Lost("the sweep is over")
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
            head = json.loads(process.stdout.readline() or b"null")
            if head is None:
                raise EOFError
            if "error" in head:
                return order, Failed(_error(head["error"]))
            results = [_exactly(process.stdout, size) for size in head["sizes"]]
        except (OSError, EOFError):
            with self._lock:
                self.process = None
            process.kill()
            status = process.wait()
            how = f"signal {-status}" if status < 0 else f"status {status}"
            return order, Lost(f"worker {process.pid} ended with {how}")
        return order, Done(results=results, seconds=head["seconds"], pid=head["pid"])

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self.process is None and not self._is_ended:
                command = [sys.executable, "-m", "posthaste_lab._worker"]
                pipe = subprocess.PIPE
                self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=self._environment)
            return self.process


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _error(told: dict[str, Any]) -> Exception:
    kind, message = told["class"], told["message"]
    if kind == "SpecError":
        return _errors.SpecError(message, told["line"], told["key"])
    known = {"BuildError": _errors.BuildError, "RunError": _errors.RunError}
    return known[kind](message) if kind in known else _errors.RunError(f"a worker failed: {kind}: {message}")


_live: weakref.WeakSet[Local] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for workers in list(_live):
        workers.close()
