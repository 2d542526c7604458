"""QUIC, its rivals and a model of TCP over emulated paths in virtual time.

>>> import posthaste_lab as lab
>>> result = lab.run({
...     "network": {"kind": "simple", "path": "average"},
...     "flows": [{"stack": "cubic", "workload": {"kind": "bulk", "object": "1MB"}}],
... }, seed=1)
>>> result["flows"][0]["completion"]  # seconds

:func:`run` makes one run, :func:`sweep` all runs of an experiment on many processors. The same description and seed
give the same packets on every machine, so results do not depend on how the work was spread.
"""

from __future__ import annotations

import json as _json
import os as _os
import typing as _typing

from . import _native
from ._errors import BuildError, RunError, SpecError
from ._names import Path, Profile, describe, experiments, stacks
from ._progress import Progress
from ._result import Failure, Result, Series
from ._sweep import CHUNK_SECONDS, MAX_SEEDS, sweep

__all__ = [
    "CHUNK_SECONDS",
    "MAX_SEEDS",
    "BuildError",
    "Failure",
    "Path",
    "Profile",
    "Progress",
    "Result",
    "RunError",
    "Series",
    "SpecError",
    "build",
    "describe",
    "experiments",
    "run",
    "stacks",
    "sweep",
]


def run(
    spec: _typing.Mapping[str, _typing.Any] | str,
    seed: int = 0,
    *,
    name: str = "run",
    folder: str | _os.PathLike[str] | None = None,
) -> dict[str, _typing.Any]:
    """Makes one run and gives its result, the same as an entry of ``runs`` in the lab's JSON: ``outcome``
    (``"completed"``, ``"deadline"``, ``{"failed": reason}``), ``virtual_seconds``, ``flows`` (``completion``, ``connect``
    and ``first_byte`` in s, ``goodput`` in bit/s, ``bytes``, ``down``, ``up``), ``links`` and ``series``.

    ``spec`` is a dict with ``network``, ``flows`` and perhaps ``deadline``, ``datagram`` and ``series``, or TOML's text of
    the same under the heading ``[run]``; :class:`Path` and :class:`Profile` stand where a path or a stack does. ``seed``
    is from 0 to 2**64 - 1. ``name`` is for messages; ``folder`` is where files of recordings are looked for.

    Other Python threads go on meanwhile, and ``KeyboardInterrupt`` returns at once.

    Raises :class:`SpecError` for a wrong key, unit, type or name, with ``line`` and ``key``; :class:`RunError` if the
    run cannot be made.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise SpecError(f"seed: {seed!r}: must be a whole number from 0 to 2**64 - 1", None, "seed")
    value = spec if isinstance(spec, (str, dict)) else dict(spec)
    return _json.loads(_native.run(value, seed, name, None if folder is None else _os.fspath(folder)))


def build() -> str:
    """Which build of the package this is: SHA-256 of its library. Results of other builds do not go together."""
    return _native.build()


if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_native.after_fork)
