"""Sweeps by tasks of Ray, on a cluster of this machine."""

from __future__ import annotations

import pytest
from conftest import Killer

import posthaste_lab as lab
from posthaste_lab import _ray

ray = pytest.importorskip("ray")


def test_a_cluster_of_one_worker_lives_as_long_as_its_sweep(experiment, expected):
    seen: list[lab.Progress] = []
    result = lab.sweep(experiment, workers=1, ray_address="local", progress=seen.append)
    assert result.json().encode() == expected
    assert len({progress.pid for progress in seen}) == 1
    assert not ray.is_initialized()
    with pytest.raises(ConnectionError):
        lab.sweep(experiment, ray_address="auto", progress=False)


@pytest.fixture(scope="module")
def cluster():
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    assert ray.is_initialized(), "sweeps leave a cluster that was there before"
    ray.shutdown()


@pytest.mark.parametrize("workers", [2, 4])
def test_bytes_are_those_of_the_command_whatever_the_workers(workers, cluster, experiment, expected):
    seen: list[lab.Progress] = []
    result = lab.sweep(experiment, workers=workers, ray_address="local", progress=seen.append)
    assert result.json().encode() == expected
    assert 1 < len({progress.pid for progress in seen}) <= workers


def test_a_worker_killed_midway_makes_no_difference(cluster, experiment, expected):
    killer = Killer()
    result = lab.sweep(experiment, workers=2, ray_address="local", progress=killer)
    assert result.json().encode() == expected
    killer.check()


def test_a_worker_of_another_build_is_refused(cluster, other_build, monkeypatch):
    class Other(_ray.Ray):
        def __init__(self, address, slots):
            super().__init__(address, slots)
            self._make = self._make.options(runtime_env={"env_vars": {"PYTHONPATH": str(other_build)}})

    monkeypatch.setattr(_ray, "Ray", Other)
    with pytest.raises(lab.BuildError, match=f"another build .*{lab.build()[:12]}.*install the same wheel"):
        lab.sweep("smoke", ray_address="local", progress=False)
