"""What can go wrong, with the messages of the command line."""

from __future__ import annotations


class SpecError(ValueError):
    """A description is wrong: a key, a unit, a type, a name. The message says what is valid.

    ``line`` is the line of the text, counted from 1, and ``key`` the key at that place with those above it
    (``run.flows.0.stack``); either is ``None`` where it is not known, ``line`` always for a dict.
    """

    line: int | None
    key: str | None

    def __init__(self, message: str, line: int | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.key = key

    def __reduce__(self):
        return type(self), (str(self), self.line, self.key)


class RunError(RuntimeError):
    """A run, or a sweep as a whole, came to nothing."""


class BuildError(RunError):
    """A worker has another build of the package: its runs may send other packets."""
