"""Draws one figure of each of the five papers: what is published (reference/*.csv) and what the lab measures.

    python/.venv/bin/python python/lab/examples/papers.py --out docs/results/papers

Cells, seeds and readings are those of ``posthaste lab run paper``; docs/results/papers.md has the pictures, and
docs/results/reproduction.md judges every row. Needs matplotlib and a clone of the repository.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("svg")
# The same picture has the same bytes.
matplotlib.rcParams.update({"svg.hashsalt": "posthaste", "svg.fonttype": "none", "font.size": 9})

from matplotlib import pyplot  # noqa: E402

import posthaste_lab as lab  # noqa: E402

REFERENCE = pathlib.Path(__file__).resolve().parents[3] / "crates/lab/reference"

PAGE_SECONDS = 5.6
"""What a page takes beyond its bytes, in s, which the paper does not give: as the comparison reads it."""


class Point(NamedTuple):
    """One place on the horizontal axis of one line."""

    x: str
    published: float
    ours: float
    low: float | None = None
    high: float | None = None


class Figure(NamedTuple):
    """A picture: lines of points by name."""

    name: str
    title: str
    x: str
    y: str
    lines: dict[str, list[Point]]
    is_ordered: bool = True
    """True if points lie in an order, so that lines join them."""


def measured(result: lab.Result, metric: str, scale: float = 1.0) -> dict[tuple[str, ...], tuple[float, float, float]]:
    """Mean and its 95 % interval of a metric, by cell."""
    found = {}
    for row in result.rows("statistics"):
        if row["metric"] == metric:
            low, high = row["mean_interval_low"], row["mean_interval_high"]
            mean = row["mean"]
            values = (mean, mean if low is None else low, mean if high is None else high)
            found[tuple(row[axis] for axis in result.axes)] = tuple(scale * value for value in values)
    return found


def reductions(result: lab.Result, scheme: str, base: str, statistic: str) -> dict[tuple[str, ...], float]:
    """How much less time the scheme takes than the base, in %, by the cells of the scheme."""
    times = {
        tuple(row[axis] for axis in result.axes): row[statistic]
        for row in result.rows("statistics")
        if row["metric"] == "completion"
    }
    other = {cell: tuple(base if label == scheme else label for label in cell) for cell in times if scheme in cell}
    return {cell: 100 * (1 - times[cell] / times[other[cell]]) for cell in other}


def published(result: lab.Result, metric: str) -> dict[tuple[str, ...], float]:
    """The first published figure of a metric, by cell."""
    found: dict[tuple[str, ...], float] = {}
    for row in result.rows("published"):
        if row["metric"].split(".")[0] == metric:
            found.setdefault(tuple(row[axis] for axis in result.axes), row["value"])
    return found


def reference(name: str) -> list[dict[str, str]]:
    """The published rows of a paper."""
    with (REFERENCE / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def history_start(run: Any) -> Figure:
    result = run("hs-calibrated-iw32", seeds=20)
    ours, theirs = reductions(result, "history-paper", "gquic-2017", "mean"), published(result, "saving")
    points = [Point(", ".join(cell[:2]), theirs[cell], ours[cell]) for cell in ours]
    title = "History start: completion time saved"
    return Figure("history-start", title, "path, object", "saved (%)", {"history start": points}, is_ordered=False)


def guaranteed_rate(run: Any) -> Figure:
    stacks = {"QUIC": "gquic-2017", "QUICMING": "quicming-paper@min_rate=8mbit"}
    cells = ["rate=8mbit,loss=5%", *(f"stack={stack}" for stack in stacks.values())]
    cells += [f"rtt={latency}ms" for latency in (0, 200, 500, 1000)]
    ours = measured(run("gr-page", cells=cells, seeds=20), "completion")
    rows = [row for row in reference("guaranteed_rate_times") if row["loss_pct"] == "5"]
    lines = {}
    for series, stack in stacks.items():
        theirs = {row["latency_ms"]: float(row["value"]) for row in rows if row["series"] == series}
        lines[series] = [
            Point(latency, theirs[latency], *(PAGE_SECONDS + value for value in ours["8mbit", f"{latency}ms", "5%", stack]))
            for latency in ("0", "200", "500", "1000")
        ]
    return Figure("guaranteed-rate", "Guaranteed rate: a page at 5 % loss", "latency (ms)", "time (s)", lines)


def window_on_ack(run: Any) -> Figure:
    stacks = {"ModQUIC": "modquic-cubic-paper", "QUIC": "quic-cubic", "TCP": "tcp:cubic"}
    result = run("wa-packets", cells=[f"stack={stack}" for stack in stacks.values()], seeds=10)
    ours, theirs = measured(result, "throughput", 1e-6), published(result, "throughput")
    packets = result.axes["packets"]
    lines = {
        series: [Point(count, theirs[count, stack], *ours[count, stack]) for count in packets]
        for series, stack in stacks.items()
    }
    return Figure("window-on-ack", "Window on ack: throughput by size", "packets", "throughput (Mbit/s)", lines)


def coordinated_group(run: Any) -> Figure:
    stack, base = "mquic-newreno-paper@3", "mquic-newreno-plain"
    result = run("cg-gain", cells=[f"stack={stack}", f"stack={base}"], seeds=40)
    ours, theirs = reductions(result, stack, base, "p50"), published(result, "saving")
    lines = {
        size: [Point(place, theirs[place, size, stack], ours[place, size, stack]) for place in result.axes["location"]]
        for size in result.axes["object"]
    }
    title = "Coordinated group: time saved by three connections"
    return Figure("coordinated-group", title, "server", "saved (%)", lines, is_ordered=False)


def fast_autotune(run: Any) -> Figure:
    result = run("fa-size", cells=["start=IW200", "stack=autotune-third", "stack=fast-third"], seeds=3)
    (theirs,) = [float(row["value"]) for row in reference("fast_autotune") if row["metric"] == "latency_reduction_mean"]
    ours = reductions(result, "fast-third", "autotune-third", "mean")
    points = [Point(cell[0], theirs, ours[cell]) for cell in ours]
    title = "Fast autotuning: time saved (published: mean of all sizes)"
    return Figure("fast-autotune", title, "object", "saved (%)", {"fast autotune": points})


def draw(figure: Figure, folder: pathlib.Path) -> pathlib.Path:
    """Published figures are hollow and dashed; ours are solid, means with their 95 % interval."""
    chart, axes = pyplot.subplots(figsize=(6.6, 3.1), layout="constrained")
    for index, (name, points) in enumerate(figure.lines.items()):
        x = [point.x for point in points]
        ours = [point.ours for point in points]
        # A reduction has no interval of its own here.
        known = [(point.ours - point.low, point.high - point.ours) for point in points if point.low is not None]
        color = f"C{index}"
        solid = {"color": color, "marker": "o", "markersize": 4, "capsize": 3, "linestyle": "-" if figure.is_ordered else ""}
        axes.errorbar(x, ours, yerr=list(zip(*known)) or None, label=f"{name}, ours", **solid)
        hollow = {"color": color, "marker": "s", "markersize": 5, "fillstyle": "none", "linestyle": "--" if figure.is_ordered else ""}
        axes.plot(x, [point.published for point in points], label=f"{name}, published", linewidth=0.8, **hollow)
    axes.set(title=figure.title, xlabel=figure.x, ylabel=figure.y)
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    path = folder / f"{figure.name}.svg"
    chart.savefig(path, metadata={"Date": None})
    pyplot.close(chart)
    return path


FIGURES = [history_start, guaranteed_rate, window_on_ack, coordinated_group, fast_autotune]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"))
    parser.add_argument("--ray-address", help="make the runs on Ray")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    def run(experiment: str, **selection: Any) -> lab.Result:
        return lab.sweep(experiment, ray_address=options.ray_address, **selection)

    for figure in FIGURES:
        made = figure(run)
        print(draw(made, options.out))
        for name, points in made.lines.items():
            for point in points:
                interval = "" if point.low is None else f" ({point.low:.2f} to {point.high:.2f})"
                print(f"  {name}, {point.x}: published {point.published:g}, ours {point.ours:.2f}{interval}")


if __name__ == "__main__":
    main()
