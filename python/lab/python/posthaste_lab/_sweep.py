"""All runs of an experiment, over processes of this machine or a cluster of Ray."""

from __future__ import annotations

import collections
import math
import os
import pathlib
import time
from collections.abc import Iterable
from typing import Any

from . import _native
from ._backend import Backend, Failed, Lost
from ._chunk import Order
from ._errors import RunError, SpecError
from ._local import Local
from ._progress import Progress, Report, reporter
from ._result import Result

CHUNK_SECONDS = 20.0
"""Wall time that a chunk should take: long against what Ray needs to give one out, short against a lost one."""

MAX_SEEDS = 10_000
"""Seeds of a sweep, as on the command line."""

_LOSSES = 3
"""Times that one chunk may lose its worker."""


def sweep(
    experiment: str | os.PathLike[str],
    *,
    seeds: int | range | None = None,
    cells: str | Iterable[str] = (),
    series: str | None = None,
    workers: int | None = None,
    ray_address: str | None = None,
    journal: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    progress: bool | Report = True,
) -> Result:
    """Runs an experiment: each of its cells with each seed. The result does not depend on how many workers there are,
    nor on which machines.

    ``experiment`` is a built-in one (:func:`experiments`), or the path of a TOML file. ``seeds`` is a number of seeds
    from 0 on, or a ``range`` of them; the experiment's own number unless given. ``cells`` chooses some of the grid:
    ``"path=good,object=1MB"``. ``series`` is the interval of time series of each cell's first run, such as ``"10ms"``.

    Without ``ray_address`` the runs are made by ``workers`` processes of this machine, one for each CPU unless given.
    With it they are tasks of Ray, one CPU each: ``"local"`` starts Ray on this machine, ``"auto"`` or
    ``"ray://HOST:PORT"`` finds a cluster whose machines have the same wheel installed; ``workers`` bounds the tasks at
    a time. A chunk of runs whose worker dies is made again by another one.

    ``journal`` is a file that keeps each result; the same call goes on from there after an interruption. ``fresh``
    empties it. ``progress`` is ``True`` for lines on stderr, or a function that takes a :class:`Progress`.
    ``KeyboardInterrupt`` ends all workers.

    Raises :class:`SpecError` if the experiment or the choice is wrong, :class:`BuildError` if a worker has another build
    of this package, :class:`RunError` if workers die again and again. Runs that fail are part of the result, see
    :attr:`Result.failures`.
    """
    definition = _definition(experiment, seeds, cells, series)
    if workers is not None and workers < 1:
        raise SpecError(f"workers: {workers}: must be 1 or more", None, "workers")
    native = _native.Sweep(**definition)
    gathering = _Gathering(native, definition, reporter(progress))
    if journal is not None:
        gathering.use(_native.Journal(os.fspath(journal), native, fresh))
    if gathering.missing:
        gathering.run(_backend(ray_address, workers, gathering.missing))
    return Result(native.gather(gathering.results))


def _definition(
    experiment: str | os.PathLike[str], seeds: int | range | None, cells: str | Iterable[str], series: str | None
) -> dict[str, Any]:
    name, text, folder = source(experiment)
    return {
        "name": name,
        "text": text,
        "folder": folder,
        "cells": [cells] if isinstance(cells, str) and cells else list(cells),
        "seeds": _seeds(seeds),
        "series": series,
    }


def source(experiment: str | os.PathLike[str]) -> tuple[str, str | None, str | None]:
    """An experiment's name, the text of its file and the file's folder; the latter only for a file."""
    name = os.fspath(experiment)
    if isinstance(experiment, str) and not name.endswith(".toml"):
        return name, None, None
    try:
        text = pathlib.Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise SpecError(f"cannot read the experiment {name}: {error}") from error
    return name, text, str(pathlib.Path(name).absolute().parent)


def _seeds(seeds: int | range | None) -> tuple[int, int] | None:
    if seeds is None:
        return None
    chosen = range(seeds) if isinstance(seeds, int) and not isinstance(seeds, bool) else seeds
    if not isinstance(chosen, range) or chosen.step != 1:
        raise SpecError("seeds: expected a count, or a range with step 1", None, "seeds")
    if not 1 <= len(chosen) <= MAX_SEEDS or chosen.start < 0 or chosen.stop > 2**64 - 1:
        raise SpecError(f"seeds: must be from 1 to {MAX_SEEDS} seeds", None, "seeds")
    return chosen.start, chosen.stop


def _backend(ray_address: str | None, workers: int | None, missing: int) -> Backend:
    if ray_address is not None:
        from ._ray import Ray

        return Ray(ray_address, workers)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Local(min(workers or available, missing))


class _Gathering:
    """The results so far, and the runs that are to be made."""

    def __init__(self, sweep: _native.Sweep, definition: dict[str, Any], report: Report) -> None:
        self._sweep = sweep
        self._definition = definition
        self._report = report
        self._results: list[bytes | None] = [None] * len(sweep)
        self._ranges: collections.deque[tuple[int, int]] = collections.deque([(0, len(sweep))])
        self._journal: _native.Journal | None = None
        self._reused = 0
        self._lost = 0
        self._losses: collections.Counter[int] = collections.Counter()
        self._made = 0
        self._seconds = 0.0

    @property
    def results(self) -> list[bytes]:
        """One for each run, once none is missing."""
        return [result for result in self._results if result is not None]

    @property
    def missing(self) -> int:
        """Number of runs that have no result."""
        return self._results.count(None)

    def use(self, journal: _native.Journal) -> None:
        """Takes what the journal has, and keeps in it what is made from now on."""
        self._journal = journal
        self._results = journal.load(self._sweep)
        self._reused = len(self._results) - self.missing
        self._ranges.clear()
        for index, result in enumerate(self._results):
            if result is not None:
                continue
            first, end = self._ranges.pop() if self._ranges else (index, index)
            if end != index:
                self._ranges.append((first, end))
                first = index
            self._ranges.append((first, index + 1))

    def run(self, backend: Backend) -> None:
        """Has all that is missing made."""
        under_way = 0
        began = time.monotonic()
        try:
            while self._ranges or under_way:
                while self._ranges and under_way < backend.slots:
                    backend.submit(self._order(backend.slots))
                    under_way += 1
                outcome = backend.wait(0.5)
                if outcome is not None:
                    under_way -= 1
                    self._settle(*outcome)
                    self._tell(outcome[1], began)
        finally:
            backend.close()

    def _order(self, slots: int) -> Order:
        first, end = self._ranges.popleft()
        size = 1
        if self._made:
            fair = math.ceil(self.missing / (2 * slots))
            size = max(1, min(int(CHUNK_SECONDS * self._made / max(self._seconds, 1e-9)), fair))
        if first + size < end:
            self._ranges.appendleft((first + size, end))
        return {
            "build": _native.build(),
            "digest": self._sweep.digest,
            "sweep": self._definition,
            "first": first,
            "end": min(first + size, end),
            "seconds": CHUNK_SECONDS,
        }

    def _settle(self, order: Order, outcome: Any) -> None:
        first, end = order["first"], order["end"]
        if isinstance(outcome, Failed):
            raise outcome.error
        if isinstance(outcome, Lost):
            self._lost += 1
            self._losses[first] += 1
            if self._losses[first] >= _LOSSES:
                cell, seed = self._sweep.name_of(first)
                at = ", ".join([*cell, f"seed {seed}"])
                raise RunError(f"{_LOSSES} workers died, each at {end - first} runs from ({at}) on: {outcome.reason}")
            self._ranges.appendleft((first, end))
            return
        results = outcome["results"]
        for index, result in enumerate(results, first):
            self._results[index] = result
            if self._journal is not None:
                self._journal.append(self._sweep, index, result)
        self._made += len(results)
        self._seconds += outcome["seconds"]
        if first + len(results) < end:
            self._ranges.appendleft((first + len(results), end))

    def _tell(self, outcome: Any, began: float) -> None:
        missing, total = self.missing, len(self._results)
        left = (time.monotonic() - began) / self._made * missing if self._made else None
        pid = None if isinstance(outcome, Lost) else outcome["pid"]
        name = self._definition["name"]
        self._report(Progress(name, total - missing, total, self._reused, self._lost, pid, left))
