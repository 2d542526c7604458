"""What a sweep has shown, as JSON, tables and series."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import _native
from ._errors import RunError, SpecError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Rows = Literal["flows", "statistics", "published"]

_UNITS = {"window": "B", "in_flight": "B", "credit": "B", "queue": "B", "pacing": "bit/s", "delivery": "bit/s", "rtt": "s"}
"""Units of time series by quantity."""

_SECONDS = {"completion", "connect", "first_byte", "limit"}


class Series(NamedTuple):
    """One quantity over time, of one run."""

    cell: dict[str, str]
    """Value of each axis."""
    seed: int
    of: str
    """The flow, or the link."""
    quantity: str
    """``window``, ``in_flight``, ``credit``, ``queue`` (bytes), ``pacing``, ``delivery`` (bit/s), ``rtt`` (s)."""
    unit: str
    times: list[float]
    """Seconds since the run began."""
    values: list[float | None]
    """``None`` where it is not known."""


class Failure(NamedTuple):
    """A run that failed."""

    cell: dict[str, str]
    seed: int
    reason: str


class Result:
    """What a sweep has shown."""

    def __init__(self, report: _native.Report) -> None:
        self._report = report

    def __repr__(self) -> str:
        cells = self._experiment["cells"]
        return f"<Result of {self.name}: {len(cells)} cells, {sum(len(cell['runs']) for cell in cells)} runs>"

    @functools.cached_property
    def _experiment(self) -> dict[str, Any]:
        return json.loads(self._report.json())["experiments"][0]

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self._experiment["name"]

    @property
    def command(self) -> str:
        """The command line that makes the same runs."""
        return self._experiment["command"]

    @property
    def axes(self) -> dict[str, list[str]]:
        """What is varied, and its values."""
        return {axis["name"]: axis["values"] for axis in self._experiment["axes"]}

    @property
    def failures(self) -> list[Failure]:
        """The runs that failed."""
        return [Failure(self._cell(cell), seed, reason) for cell, seed, reason in self._report.failures()]

    def json(self) -> str:
        """All of it, byte for byte as ``posthaste lab run NAME --json FILE`` writes it for the same selection."""
        return self._report.json()

    def html(self) -> str:
        """The page that ``posthaste lab run NAME --html FILE`` writes."""
        return self._report.html()

    def rows(self, rows: Rows = "flows") -> list[dict[str, Any]]:
        """The table as a list of dicts.

        ``"flows"`` has a row for each flow of each run: the axes, ``seed``, ``outcome``, ``virtual_seconds``, ``flow``,
        ``stack``, ``completion``, ``connect`` and ``first_byte`` (s), ``goodput`` (bit/s), ``bytes`` (B), and for each
        direction what was sent, received and lost, delays (``_ms``) and the stack's counters.
        ``"statistics"`` has a row for each metric of each cell: ``unit``, ``n``, ``mean``, ``p50``, ``p95`` and more.
        ``"published"`` has a row for each figure that others have published for a cell: ``metric``, ``value``, ``unit`` as
        printed, ``source``.
        """
        if rows == "flows":
            return list(self._flows())
        if rows == "statistics":
            return list(self._statistics())
        if rows == "published":
            cells = self._experiment["cells"]
            return [{**self._cell(cell["coordinates"]), **row} for cell in cells for row in cell["published"]]
        known = '"flows", "statistics" and "published"'
        raise SpecError(f'rows: "{rows}" is unknown: there are {known}', None, "rows")

    def to_arrow(self, rows: Rows = "flows") -> pyarrow.Table:
        """The table of :meth:`rows`; units are in the fields' metadata. Needs pyarrow."""
        arrow = _needed("pyarrow", "arrow")
        table = self.rows(rows)
        names = list(dict.fromkeys(name for row in table for name in row))
        columns, fields = [], []
        for name in names:
            column = arrow.array([row.get(name) for row in table])
            if arrow.types.is_null(column.type):
                column = column.cast(arrow.float64())
            unit = _unit(name)
            fields.append(arrow.field(name, column.type, metadata={"unit": unit} if unit else None))
            columns.append(column)
        return arrow.table(columns, schema=arrow.schema(fields))

    def to_pandas(self, rows: Rows = "flows") -> pandas.DataFrame:
        """The table of :meth:`rows`. Needs pandas and pyarrow."""
        _needed("pandas", "pandas")
        return self.to_arrow(rows).to_pandas()

    def to_polars(self, rows: Rows = "flows") -> polars.DataFrame:
        """The table of :meth:`rows`. Needs polars and pyarrow."""
        return _needed("polars", "polars").from_arrow(self.to_arrow(rows))

    def series(self, quantity: str | None = None, of: str | None = None, **axes: str) -> list[Series]:
        """Time series, for plots: those of one quantity, of one flow or link, of some cells, or all of them. Runs have
        them if the sweep was made with ``series``, or the experiment says so."""
        unknown = axes.keys() - self.axes.keys()
        if unknown:
            known = ", ".join(self.axes)
            raise SpecError(f"there is no axis `{min(unknown)}`; there are {known}", None, min(unknown))
        found = []
        for cell, run in self._runs():
            if run.get("series") is None or any(cell[axis] != value for axis, value in axes.items()):
                continue
            for gauge in run["series"]["gauges"]:
                if quantity in (None, gauge["quantity"]) and of in (None, gauge["of"]):
                    unit = _UNITS.get(gauge["quantity"], "")
                    times, values = run["series"]["times"], gauge["values"]
                    found.append(Series(cell, run["seed"], gauge["of"], gauge["quantity"], unit, times, values))
        return found

    def _cell(self, coordinates: list[str]) -> dict[str, str]:
        return dict(zip(self.axes, coordinates))

    def _runs(self) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
        for cell in self._experiment["cells"]:
            for run in cell["runs"]:
                yield self._cell(cell["coordinates"]), run

    def _flows(self) -> Iterator[dict[str, Any]]:
        for cell, run in self._runs():
            outcome = run["outcome"]
            head = {
                **cell,
                "seed": run["seed"],
                "outcome": outcome if isinstance(outcome, str) else "failed",
                "virtual_seconds": run["virtual_seconds"],
                "trace_hash": run["trace_hash"],
            }
            for flow in run["flows"]:
                # An axis `stack` has the cell's name of it; the axes come first.
                yield {**head, "flow": flow["name"], **_flat("", flow), **head}

    def _statistics(self) -> Iterator[dict[str, Any]]:
        for cell in self._experiment["cells"]:
            for metric, summary in cell["statistics"].items():
                yield {**self._cell(cell["coordinates"]), "metric": metric, **_flat("", summary)}


def _flat(prefix: str, value: dict[str, Any]) -> dict[str, Any]:
    """Inner tables as columns; lists are left out."""
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if inner is None and key.endswith("interval"):
            flat |= {f"{prefix}{key}_low": None, f"{prefix}{key}_high": None}
        elif isinstance(inner, dict):
            flat |= _flat(f"{prefix}{key}_", inner)
        elif not isinstance(inner, list) and f"{prefix}{key}" != "name":
            flat[prefix + key] = inner
    return flat


def _unit(column: str) -> str | None:
    if column.endswith("_ms"):
        return "ms"
    if column in _SECONDS or column.endswith("_seconds"):
        return "s"
    if column.endswith("_nanos"):
        return "ns"
    if column == "goodput":
        return "bit/s"
    return "B" if "bytes" in column.split("_") else None


def _needed(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RunError(f"this needs {module}: pip install 'posthaste-lab[{extra}]'") from error
