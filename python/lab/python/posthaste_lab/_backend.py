"""What makes chunks: the processes of ``_local``, or the tasks of ``_ray``."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ._chunk import Done, Order


class Lost(NamedTuple):
    """A worker died; the chunk can be made again."""

    reason: str


class Failed(NamedTuple):
    """The chunk cannot be made, by no worker."""

    error: Exception


Outcome = tuple[Order, Done | Lost | Failed]


class Backend(abc.ABC):
    """Makes up to ``slots`` chunks at a time."""

    slots: int

    @abc.abstractmethod
    def submit(self, order: Order) -> None:
        """Begins a chunk; never more than ``slots`` at a time."""

    @abc.abstractmethod
    def wait(self, seconds: float) -> Outcome | None:
        """A chunk that has ended, or ``None`` after this time."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends what is under way."""
