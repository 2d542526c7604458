"""Workers as tasks of Ray."""

from __future__ import annotations

from typing import Any

from . import _chunk
from ._backend import Backend, Failed, Lost, Outcome
from ._chunk import Order
from ._errors import RunError

RETRIES = 3
"""How often Ray makes a chunk again whose worker died."""


class Ray(Backend):
    """Tasks of one CPU each on the cluster at ``address``.

    ``"local"`` starts a cluster on this machine that ends with the sweep; a program that is connected to a cluster
    already stays with it. ``slots`` bounds the tasks at a time; the cluster's CPUs unless given.
    """

    def __init__(self, address: str, slots: int | None) -> None:
        try:
            import ray
        except ImportError as error:
            raise RunError("ray_address needs Ray: pip install 'posthaste-lab[ray]'") from error
        self._ray = ray
        self._is_owner = not ray.is_initialized()
        if self._is_owner:
            own: dict[str, Any] = {"num_cpus": slots, "include_dashboard": False} if address == "local" else {}
            ray.init(address=address, log_to_driver=False, **own)
        self.slots = slots or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._make = ray.remote(num_cpus=1, max_retries=RETRIES)(_chunk.make)
        self._under_way: dict[Any, Order] = {}

    def submit(self, order: Order) -> None:
        self._under_way[self._make.remote(order)] = order

    def wait(self, seconds: float) -> Outcome | None:
        ready, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=seconds)
        if not ready:
            return None
        order = self._under_way.pop(ready[0])
        errors = self._ray.exceptions
        try:
            return order, self._ray.get(ready[0])
        except errors.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            return order, Failed(_missing(cause))
        except errors.RayError as error:
            return order, Lost(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        for task in self._under_way:
            self._ray.cancel(task, force=True)
        self._under_way.clear()
        if self._is_owner:
            self._ray.shutdown()


def _missing(error: Exception) -> Exception:
    if isinstance(error, ModuleNotFoundError):
        return RunError(f"a machine of the cluster lacks a package: {error}: install posthaste-lab on all of them")
    return error
