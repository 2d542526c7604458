"""Wrong descriptions: the command line's message, with line and key."""

from __future__ import annotations

import datetime
import pickle
import subprocess

import pytest

import posthaste_lab as lab

FLOW = {"stack": "cubic", "workload": {"kind": "bulk", "object": "1MB"}}
RUN = {"network": {"kind": "simple", "path": "good"}, "flows": [FLOW]}

EXPERIMENT = """title = "t"
question = "q"
source = "s"
metrics = ["completion"]
[run]
network = { kind = "simple", path = "good" }
flows = [
  { stack = "cubic", workload = { kind = "bulk", object = "1MB" } },
]
deadline = "30s"
"""

# What is put in place of what, and line and key of the fault.
WRONG = [
    ('deadline = "30s"', 'deadlin = "30s"', 10, "run.deadlin"),
    ('deadline = "30s"', 'deadline = "30 parsecs"', 10, "run.deadline"),
    ('deadline = "30s"', "deadline = [1]", 10, "run.deadline"),
    ('stack = "cubic"', 'stack = "cubik"', 8, "run.flows.0.stack"),
    ('stack = "cubic"', 'stack = "cubic@beta=2"', 8, "run.flows.0.stack"),
    ('object = "1MB"', 'object = "1 furlong"', 8, "run.flows.0.workload.object"),
    ('path = "good"', 'path = "goood"', 6, "run.network.path"),
    ('kind = "simple"', 'kind = "simpel"', 6, "run.network.kind"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "key"), WRONG)
def test_the_message_is_the_command_lines_with_line_and_key(right, wrong, line, key, command, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(EXPERIMENT.replace(right, wrong))
    assert path.read_text() != EXPERIMENT
    run = subprocess.run([command, "lab", "run", str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    with pytest.raises(lab.SpecError) as caught:
        lab.sweep(path)
    assert str(caught.value) and f"posthaste: {caught.value}\n" in run.stderr
    assert (caught.value.line, caught.value.key) == (line, key)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.line, copy.key) == (str(caught.value), line, key)

    text = "[run]" + EXPERIMENT.split("[run]")[1].replace(right, wrong)
    with pytest.raises(lab.SpecError) as caught:
        lab.run(text)
    assert (caught.value.line, caught.value.key) == (line - 4, key)


def changed(**changes):
    return {**RUN, **changes}


LOOP = {}
LOOP["inner"] = LOOP


@pytest.mark.parametrize(
    ("spec", "key", "words"),
    [
        (changed(deadlin="30s"), "run.deadlin", "deadline"),
        (changed(deadline="30 parsecs"), "run.deadline", "parsecs"),
        (changed(deadline=datetime.timedelta(seconds=30)), "run.deadline", "timedelta is not possible here"),
        (changed(deadline=None), "run.deadline", "NoneType is not possible here"),
        (changed(datagram=2**70), "run.datagram", "64 bits"),
        (changed(flows=[{**FLOW, "stack": "cubik"}]), "run.flows.0.stack", "there is no stack `cubik`"),
        (changed(flows=[{**FLOW, 1: 2}]), "run.flows.0", "the key 1 is not a text"),
        (changed(network=LOOP), None, "more than 32 levels"),
        ({}, None, "network"),
    ],
)
def test_a_dict_has_keys_and_no_lines(spec, key, words):
    with pytest.raises(lab.SpecError, match=words) as caught:
        lab.run(spec, seed=1)
    assert caught.value.line is None
    assert key is None or caught.value.key == key
    assert "line " not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lab.run(RUN, seed=-1), "seed: -1"),
        (lambda: lab.run(RUN, seed=True), "seed: True"),
        (lambda: lab.run(RUN, seed=2**64), "seed: "),
        (lambda: lab.sweep("hs-simpel"), "there is no experiment `hs-simpel`; there are smoke, hs-simple, "),
        (lambda: lab.sweep("missing.toml"), "cannot read the experiment missing.toml"),
        (lambda: lab.sweep("smoke", cells="objekt=20kB"), "cells: there is no axis `objekt`; there are object, stack"),
        (lambda: lab.sweep("smoke", cells="object"), "cells: `object` is no choice of cells"),
        (lambda: lab.sweep("smoke", seeds=0), "seeds: must be from 1 to 10000"),
        (lambda: lab.sweep("smoke", seeds=range(0, 4, 2)), "seeds: expected a count"),
        (lambda: lab.sweep("smoke", series="often"), "series: "),
        (lambda: lab.sweep("smoke", workers=0), "workers: 0"),
        (lambda: lab.Path("goood"), "path: .*goood"),
        (lambda: lab.Path("good", loss="200%"), "path: `200%` is not a probability"),
        (lambda: lab.Path("good", los="2%"), "path: .*los"),
        (lambda: lab.Profile("cubik"), "there is no profile `cubik`"),
        (lambda: lab.Profile("cubic", beta=2), "profile `cubic`: .*beta"),
        (lambda: lab.Profile("cubic", beta=[2]), "beta: list is not possible"),
        (lambda: lab.Profile.of("mine", congestion={"cubik": {}}), "profile `mine`"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(lab.SpecError, match=words):
        call()
