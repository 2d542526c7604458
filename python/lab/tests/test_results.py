"""Runs, tables and series."""

from __future__ import annotations

import json

import pytest
from conftest import by_command

import posthaste_lab as lab

FLOW = {"name": "fetch", "stack": "cubic", "workload": {"kind": "bulk", "object": "20kB"}}
RUN = {"network": {"kind": "simple", "path": "good"}, "flows": [FLOW]}


def test_a_run_is_the_one_of_the_command(command):
    (experiment,) = json.loads(by_command(command, "smoke", "--cells", "object=20kB,stack=cubic"))["experiments"]
    flow = {"stack": "cubic", "workload": {"kind": "bulk", "object": "20kB"}}
    spec = {"network": RUN["network"], "flows": [flow], "deadline": "30s"}
    text = """
        [run]
        network = { kind = "simple", path = "good" }
        flows = [{ stack = "cubic", workload = { kind = "bulk", object = "20kB" } }]
        deadline = "30s"
    """
    for expected in experiment["cells"][0]["runs"]:
        assert lab.run(spec, expected["seed"]) == lab.run(text, expected["seed"]) == expected


def test_paths_and_profiles_stand_in_descriptions():
    slow = lab.run({**RUN, "network": {"kind": "simple", "path": lab.Path("good", rtt="300ms")}})
    fast = lab.run(RUN)
    assert slow["flows"][0]["completion"] > fast["flows"][0]["completion"] + 0.3
    profile = lab.Profile("cubic", {"credit.stream.maximum": "4MiB"}, beta=0.8)
    run = lab.run({**RUN, "flows": [{**FLOW, "stack": profile}]})
    assert run["flows"][0]["stack"] == profile.name == "cubic@credit.stream.maximum=4MiB,beta=0.8"
    mine = lab.Profile.of("mine", congestion={"cubic": {"beta": 0.8}})
    assert mine.parameters["congestion.beta"].startswith("0.8")
    assert lab.run({**RUN, "flows": [{**FLOW, "stack": mine}]})["flows"][0]["stack"] == "mine"


def test_names():
    assert "hs-simple" in lab.experiments()
    assert lab.describe("smoke")["cells"][0] == ["20kB", "standard"]
    stacks = lab.stacks()
    assert stacks["profiles"][0] == "cubic" and "quinn:bbr" in stacks["rivals"] and "bbr1" in stacks["comparison"]
    assert "average" in lab.Path.names()
    assert "RTT" in repr(lab.Path("average"))


@pytest.fixture(scope="module")
def result() -> lab.Result:
    return lab.sweep("smoke", seeds=2, series="10ms", workers=1, progress=False)


def test_tables_are_read_by_arrow_pandas_and_polars(result):
    rows = result.rows()
    assert len(rows) == 8
    arrow, pandas, polars = result.to_arrow(), result.to_pandas(), result.to_polars()
    assert arrow.column_names[:3] == ["object", "stack", "seed"]
    assert arrow.num_rows == len(pandas) == len(polars) == 8
    for name in ["completion", "goodput", "down_packets_sent", "down_counters_lost", "stack"]:
        values = [row[name] for row in rows]
        assert arrow[name].to_pylist() == list(pandas[name]) == polars[name].to_list() == values
    units = {field.name: (field.metadata or {}).get(b"unit") for field in arrow.schema}
    assert units["completion"] == b"s" and units["goodput"] == b"bit/s" and units["down_bytes_sent"] == b"B"
    assert units["down_delay_mean_ms"] == b"ms" and units["seed"] is None


def test_statistics_are_those_of_the_json(result):
    cell = json.loads(result.json())["experiments"][0]["cells"][0]
    for rows in [result.rows("statistics"), result.to_arrow("statistics").to_pylist()]:
        (row,) = [row for row in rows if row["metric"] == "completion" and row["stack"] == "standard" and row["object"] == "20kB"]
        assert row["mean"] == cell["statistics"]["completion"]["mean"] and row["unit"] == "s" and row["n"] == 2


def test_series_are_chosen_by_quantity_and_axis(result):
    everything = result.series()
    assert {series.seed for series in everything} == {0}, "the first run of each cell has them"
    (series,) = result.series("window", object="50kB", stack="cubic")
    assert series.unit == "B" and series.cell == {"object": "50kB", "stack": "cubic"}
    assert len(series.times) == len(series.values) > 3
    with pytest.raises(lab.SpecError, match="there is no axis `objekt`; there are object, stack"):
        result.series(objekt="50kB")
    with pytest.raises(lab.SpecError, match="rows: "):
        result.rows("runs")
