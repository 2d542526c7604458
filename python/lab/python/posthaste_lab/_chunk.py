"""A chunk of a sweep: the same function in a worker of this machine and in a task of Ray."""

from __future__ import annotations

import functools
import json
import os
import time
from typing import Any, TypedDict

from . import _native
from ._errors import BuildError


class Order(TypedDict):
    """What a worker is to do."""

    build: str
    """The caller's build."""
    digest: str
    """Of all that the results follow from, as the caller sees it."""
    sweep: dict[str, Any]
    """Arguments of ``_native.Sweep``."""
    first: int
    """Index of the first run."""
    end: int
    """Index after the last run."""
    seconds: float
    """After this time no further run is begun."""


class Done(TypedDict):
    """What a worker has done."""

    results: list[bytes]
    """One for each run that was made, in their order; fewer than asked for if time was up."""
    seconds: float
    """Wall time that they took."""
    pid: int
    """The worker's process."""


@functools.lru_cache(maxsize=4)
def _sweep(definition: str) -> _native.Sweep:
    arguments = json.loads(definition)
    # JSON has no tuples.
    seeds = arguments.get("seeds")
    return _native.Sweep(**{**arguments, "seeds": seeds and tuple(seeds)})


def make(order: Order) -> Done:
    """Makes the runs of an order; refuses those of another build, or of an experiment that is another here."""
    began = time.monotonic()
    if order["build"] != _native.build():
        theirs, ours = order["build"][:12], _native.build()[:12]
        raise BuildError(
            f"a worker has another build of posthaste-lab ({ours}) than the caller ({theirs}): "
            "install the same wheel on every machine"
        )
    sweep = _sweep(json.dumps(order["sweep"], sort_keys=True))
    if order["digest"] != sweep.digest:
        raise BuildError(
            f"the experiment {order['sweep']['name']} is another on a worker than at the caller: "
            "the files that it names must be the same on every machine"
        )
    results = sweep.make(order["first"], order["end"], order["seconds"])
    return {"results": results, "seconds": time.monotonic() - began, "pid": os.getpid()}
