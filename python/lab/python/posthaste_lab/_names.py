"""Experiments, paths, profiles and stacks by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _native
from ._errors import SpecError
from ._sweep import source


def experiments() -> list[str]:
    """Names of the built-in experiments."""
    return _native.experiments()


def describe(experiment: str | os.PathLike[str]) -> dict[str, Any]:
    """What an experiment asks: ``title``, ``question``, ``source``, ``axes``, ``cells``, ``seeds``, ``metrics``."""
    return json.loads(_native.describe_experiment(*source(experiment)))


def stacks() -> dict[str, list[str]]:
    """Names of stacks: ``profiles`` of Posthaste, those for ``comparison`` (schemes as published, baselines), and
    ``rivals``: noq-proto, quinn-proto and the model of Linux's TCP."""
    return json.loads(_native.stacks())


class Path:
    """A path: both directions of a link, by name or by its properties.

    >>> Path("average")
    >>> Path("average", rtt="100ms", loss="2%")
    >>> Path(rtt="50ms", rate="20mbit", queue="1bdp")

    The keys are those of experiment files with ``_`` for ``-``: ``rtt``, ``rate``, ``up_rate`` (``"20mbit"``), ``loss``,
    ``up_loss`` (``"2%"`` or 0.02), ``jitter``, ``queue`` (``"1bdp"``, ``"64kB"``, ``"100ms"``), ``trace_file`` and more.
    """

    def __init__(self, base: str | None = None, **properties: Any) -> None:
        table = {key.replace("_", "-"): value for key, value in properties.items() if value is not None}
        self._value: str | dict[str, Any] = base if base is not None and not table else table
        if base is not None and table:
            self._value = {"base": base, **table}
        self._text = _native.describe_path(self._value)

    @staticmethod
    def names() -> dict[str, str]:
        """The named paths, and where their figures come from."""
        return json.loads(_native.describe_path(None))

    def __repr__(self) -> str:
        return f"<Path {self._text}>"

    def _spec(self) -> str | dict[str, Any]:
        return self._value


class Profile:
    """What decides about speed: a named set of policies, perhaps with other constants.

    >>> Profile("cubic")
    >>> Profile("cubic", beta=0.8)
    >>> Profile("cubic", {"credit.stream.maximum": "4MiB"})
    >>> Profile.of("mine", congestion={"cubic": {"beta": 0.8}})

    A profile stands wherever a description names a stack; :attr:`name` is that name.
    """

    def __init__(self, name: str, parameters: Mapping[str, Any] | None = None, /, **constants: Any) -> None:
        chosen = {**(parameters or {}), **constants}
        terms = ",".join(f"{key}={_text(key, value)}" for key, value in chosen.items())
        self._value: str | dict[str, Any] = name if not terms else f"{name}{',' if '@' in name else '@'}{terms}"
        self._report = json.loads(_native.describe_profile(self._value, None))

    @classmethod
    def of(cls, name: str, **seams: Any) -> Profile:
        """A profile of one's own: a table for each seam as in a profile's file; what is left out is as in ``cubic``."""
        profile = cls.__new__(cls)
        profile._value = {"name": name, **seams}
        text = _native.to_toml({"description": name, **seams}, "profile")
        profile._report = json.loads(_native.describe_profile(name, text))
        return profile

    @property
    def name(self) -> str:
        """Its name with its parameters, as in results."""
        return self._report["name"]

    @property
    def policies(self) -> list[dict[str, Any]]:
        """Its policies: ``seam``, ``name``, ``claims``, ``source``, ``use_when``, ``breaks_when`` and ``constants``
        (``name``, ``value``)."""
        return self._report["policies"]

    @property
    def parameters(self) -> dict[str, str]:
        """Constants of its policies, by ``seam.name``."""
        return {
            f"{policy['seam']}.{constant['name']}": constant["value"]
            for policy in self.policies
            for constant in policy["constants"]
        }

    def __repr__(self) -> str:
        return f"<Profile {self.name}: {self._report['description']}>"

    def _spec(self) -> str | dict[str, Any]:
        return self._value


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, str)):
        return str(value)
    raise SpecError(f'{key}: {type(value).__name__} is not possible: write a number or a text such as "25 ms"', None, key)
