"""Sweeps by processes of this machine."""

from __future__ import annotations

import json
import pathlib

import pytest
from conftest import Killer, by_command, children

import posthaste_lab as lab
from posthaste_lab import _native, _sweep
from posthaste_lab._local import Local


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_bytes_are_those_of_the_command_whatever_the_workers(workers, experiment, expected):
    result = lab.sweep(experiment, workers=workers, progress=False)
    assert result.json().encode() == expected


def test_a_worker_killed_midway_makes_no_difference(experiment, expected):
    killer = Killer()
    result = lab.sweep(experiment, workers=2, progress=killer)
    assert result.json().encode() == expected
    killer.check()
    assert killer.last is not None and killer.last.lost == 1
    assert not children() & set(killer.pids)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({"cells": "object=20kB,stack=cubic", "seeds": 4}, ["--cells", "object=20kB,stack=cubic", "--seeds", "4"]),
        ({"cells": ["object=20kB", "stack=cubic"]}, ["--cells", "object=20kB", "--cells", "stack=cubic"]),
        ({"seeds": range(5, 7), "series": "20ms"}, ["--seeds", "5..7", "--series", "20ms"]),
    ],
)
def test_a_selection_is_the_one_of_the_command(options, arguments, command):
    result = lab.sweep("smoke", workers=1, progress=False, **options)
    assert result.json().encode() == by_command(command, "smoke", *arguments)
    assert result.command.startswith("posthaste lab run smoke")


def test_the_page_is_the_one_of_the_command(command, tmp_path):
    by_command(command, "smoke", "--html", str(tmp_path / "page.html"))
    assert lab.sweep("smoke", workers=1, progress=False).html() == (tmp_path / "page.html").read_text()


def test_a_chunk_that_kills_each_worker_ends_the_sweep(monkeypatch):
    killed = []

    class Deadly(Local):
        def submit(self, order):
            super().submit(order)
            killed.append(1)
            import os
            import signal
            import time

            while not self.pids:
                time.sleep(0.001)
            os.kill(self.pids[0], signal.SIGKILL)

    monkeypatch.setattr(_sweep, "Local", Deadly)
    with pytest.raises(lab.RunError, match=r"3 workers died.*seed 0"):
        lab.sweep("smoke", workers=1, progress=False)
    assert len(killed) == 3


def test_a_worker_of_another_build_is_refused(other_build, monkeypatch):
    class Other(Local):
        def __init__(self, slots):
            super().__init__(slots, {"PYTHONPATH": str(other_build)})

    monkeypatch.setattr(_sweep, "Local", Other)
    before = children()
    with pytest.raises(lab.BuildError, match=f"another build .*{lab.build()[:12]}.*install the same wheel"):
        lab.sweep("smoke", workers=2, progress=False)
    assert children() == before


def test_an_experiment_that_is_another_at_the_worker_is_refused():
    from posthaste_lab import _chunk

    order = {"build": lab.build(), "digest": "0" * 32, "sweep": {"name": "smoke"}, "first": 0, "end": 1, "seconds": 1.0}
    with pytest.raises(lab.BuildError, match="smoke is another on a worker"):
        _chunk.make(order)


def test_chunks_end_when_their_time_is_up():
    sweep = _native.Sweep("smoke")
    assert len(sweep.make(0, 12, 0.0)) == 1, "one run is always made"
    assert len(sweep.make(0, 12, 60.0)) == 12


def test_a_journal_goes_on_where_it_was_cut_off(experiment, expected, tmp_path):
    journal = tmp_path / "runs.jsonl"
    lab.sweep(experiment, workers=2, progress=False, journal=journal)
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert len(lines) == 41
    journal.write_bytes(b"".join(lines[:20]) + lines[20][: len(lines[20]) // 2])
    seen = []
    result = lab.sweep(experiment, workers=2, progress=seen.append, journal=journal)
    assert result.json().encode() == expected
    assert seen[-1].reused == 19 and seen[-1].done == 40
    again = lab.sweep(experiment, workers=2, progress=seen.append, journal=journal)
    assert again.json().encode() == expected
    assert len(journal.read_bytes().splitlines()) == 1 + 40 + 1, "the damaged line stays, and counts as missing"


def test_a_journal_of_something_else_is_refused_and_left(tmp_path):
    journal = tmp_path / "runs.jsonl"
    lab.sweep("smoke", workers=1, progress=False, journal=journal)
    before = journal.read_bytes()
    with pytest.raises(lab.SpecError, match=r"holds other runs: they are of `smoke --seeds 0\.\.3`, not of"):
        lab.sweep("smoke", seeds=2, workers=1, progress=False, journal=journal)
    head = json.loads(before.splitlines()[0])
    head["journal"]["program"] = "0" * 64
    journal.write_bytes(json.dumps(head, separators=(",", ":")).encode() + b"\n")
    with pytest.raises(lab.SpecError, match="another build of posthaste"):
        lab.sweep("smoke", workers=1, progress=False, journal=journal)
    journal.write_text("notes\n")
    for fresh in [False, True]:
        with pytest.raises(lab.SpecError, match="holds no runs; it is left as it is") as caught:
            lab.sweep("smoke", workers=1, progress=False, journal=journal, fresh=fresh)
        assert caught.value.key == "journal"
    assert journal.read_text() == "notes\n"
    with pytest.raises(lab.RunError, match="cannot keep runs in"):
        lab.sweep("smoke", workers=1, progress=False, journal=tmp_path / "missing" / "runs.jsonl")


def test_progress_is_told_to_the_end(capsys):
    seen: list[lab.Progress] = []
    lab.sweep("smoke", workers=1, progress=seen.append)
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert (seen[-1].done, seen[-1].total, seen[-1].name) == (12, 12, "smoke")
    assert seen[-1].seconds_left == 0
    lab.sweep("smoke", workers=1)
    assert capsys.readouterr().err == "smoke 12/12\n"


def test_failed_runs_are_part_of_the_result(tmp_path):
    path = pathlib.Path(tmp_path / "late.toml")
    text = """
        title = "Too large for its flow"
        question = "What becomes of runs that fail?"
        source = "ours"
        metrics = ["completion"]
        [run]
        network = { kind = "simple", path = { base = "good", outage = { start = "10ms", length = "400s" } } }
        flows = [{ stack = "cubic", workload = { kind = "bulk", object = "1MB" } }]
        deadline = "2s"
    """
    path.write_text(text)
    result = lab.sweep(path, workers=1, progress=False)
    (row,) = result.rows()
    assert row["outcome"] == "deadline" and row["completion"] is None
    assert result.failures == []
