"""How far a sweep is."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    name: str
    """The experiment."""
    done: int
    """Runs that are done, those of the journal included."""
    total: int
    """All runs."""
    reused: int
    """Runs from the journal."""
    lost: int
    """Chunks whose worker died, and that were given to another one."""
    pid: int | None
    """Process of the worker that was last heard of."""
    seconds_left: float | None
    """Estimated wall time to the end in seconds; ``None`` before the first results."""


Report = Callable[[Progress], None]


def reporter(progress: bool | Report) -> Report:
    """What ``progress`` asks for: a function of its own, lines on stderr, or nothing."""
    if callable(progress):
        return progress
    return _Lines() if progress else lambda _: None


class _Lines:
    """One line that changes on a terminal; elsewhere a line every five seconds, and the last."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._next = time.monotonic() + (0 if self._is_terminal else 5)

    def __call__(self, progress: Progress) -> None:
        is_last = progress.done == progress.total
        if sys.stderr is None or (time.monotonic() < self._next and not is_last):
            return
        self._next = time.monotonic() + (0.2 if self._is_terminal else 5)
        text = f"{progress.name} {progress.done}/{progress.total}"
        if progress.seconds_left is not None and not is_last:
            text += f", about {progress.seconds_left:.0f} s left"
        if progress.lost:
            text += f", {progress.lost} chunks lost and given out again"
        end = "\n" if is_last or not self._is_terminal else ""
        print(f"\r{text}\x1b[K" if self._is_terminal else text, end=end, file=sys.stderr, flush=True)
