"""The examples, in short."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

import posthaste_lab as lab

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_search_knows_the_hand_set_constants_and_its_bound():
    pytest.importorskip("optuna")
    search = example("search")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        hand_set, other = search.search(search.Judge(pool, range(1)), trials=2, seed=1)
    assert hand_set.params == search.HAND_SET and hand_set.value == pytest.approx(1.0)
    assert other.params != search.HAND_SET and other.value != hand_set.value
    for trial in (hand_set, other):
        violation = search.BOUND - trial.user_attrs["neighbour"]
        assert trial.constraints == {"neighbour": violation}


def test_pictures_have_every_point_and_repeat(tmp_path):
    pytest.importorskip("matplotlib")
    papers = example("papers")

    def run(experiment, **selection):
        return lab.sweep(experiment, progress=False, **{**selection, "seeds": 1})

    figure = papers.window_on_ack(run)
    assert [len(points) for points in figure.lines.values()] == [5, 5, 5]
    assert figure.lines["TCP"][0].published == 2.12
    picture = papers.draw(figure, tmp_path).read_bytes()
    assert papers.draw(figure, tmp_path).read_bytes() == picture
