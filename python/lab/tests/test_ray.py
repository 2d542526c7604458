"""Sweeps by tasks of Ray, on a cluster of this machine."""

from __future__ import annotations

import pytest
from conftest import Killer

import posthaste_lab as lab

ray = pytest.importorskip("ray")


@pytest.fixture(autouse=True)
def no_cluster_is_left():
    yield
    assert not ray.is_initialized(), "a sweep ends the cluster that it has started"


@pytest.mark.parametrize("workers", [1, 2])
def test_bytes_are_those_of_the_command_whatever_the_workers(workers, experiment, expected):
    seen: list[lab.Progress] = []
    result = lab.sweep(experiment, workers=workers, ray_address="local", progress=seen.append)
    assert result.json().encode() == expected
    assert len({progress.pid for progress in seen}) == workers


def test_a_worker_of_four_killed_midway_makes_no_difference(experiment, expected):
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    try:
        assert lab.sweep(experiment, ray_address="local", progress=False).json().encode() == expected
        killer = Killer()
        result = lab.sweep(experiment, workers=2, ray_address="local", progress=killer)
        assert result.json().encode() == expected
        killer.check()
        assert ray.is_initialized(), "it was there before"
    finally:
        ray.shutdown()


def test_a_worker_of_another_build_is_refused(other_build):
    environment = {"env_vars": {"PYTHONPATH": str(other_build)}}
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    try:
        with pytest.raises(lab.BuildError, match=f"another build .*{lab.build()[:12]}.*install the same wheel"):
            lab.sweep("smoke", ray_address="local", progress=False)
    finally:
        ray.shutdown()


def test_an_address_without_a_cluster_is_an_error():
    with pytest.raises(ConnectionError):
        lab.sweep("smoke", ray_address="auto", progress=False)
