"""What the tests share."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import pytest

import posthaste_lab

EXPERIMENT = """
title = "Fetches that take a while"
question = "Does it matter who makes the runs?"
source = "ours"
seeds = 10
metrics = ["completion", "to-limit"]

[run]
network = { kind = "simple", path = { base = "average", loss = "0.5%" } }
flows = [{ stack = "cubic", workload = { kind = "bulk", object = "3MB" } }]
series = "100ms"

[[axis]]
name = "stack"
key = "flows.0.stack"
values = ["cubic", "bbr", "tcp:cubic", "quinn:cubic"]
"""


@pytest.fixture(scope="session")
def command() -> str:
    """The program `posthaste`, whose runs are the measure."""
    command = os.environ.get("POSTHASTE") or shutil.which("posthaste")
    assert command, "set POSTHASTE to the program, as python/test does"
    return command


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A file of 40 runs of some tens of milliseconds."""
    path = tmp_path_factory.mktemp("experiment") / "while.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="session")
def expected(command: str, experiment: pathlib.Path) -> bytes:
    """What the command line writes of that experiment."""
    return by_command(command, str(experiment))


@pytest.fixture(scope="session")
def other_build(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder that has another build of the package."""
    folder = tmp_path_factory.mktemp("other")
    package = folder / "posthaste_lab"
    shutil.copytree(pathlib.Path(posthaste_lab.__file__).parent, package)
    (library,) = package.glob("_native*.so")
    with library.open("ab") as file:
        file.write(b"\0")
    return folder


def by_command(command: str, *arguments: str) -> bytes:
    """The JSON that `posthaste lab run` writes."""
    run = [command, "lab", "run", "--quiet", "--json", "/dev/stdout", *arguments]
    return subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout


def python(program: str, seconds: float = 60, **options) -> subprocess.CompletedProcess[str]:
    """Runs a program in an interpreter of its own, which must end in time."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, timeout=seconds, text=True, capture_output=True, check=False, **options)


def children() -> set[int]:
    """Processes that this one has started."""
    found = set()
    for task in pathlib.Path("/proc/self/task").iterdir():
        found.update(map(int, (task / "children").read_text().split()))
    return found


class Killer:
    """A `progress` that kills the worker that it hears of first, a moment after that one has its next chunk."""

    def __init__(self) -> None:
        self.killed: int | None = None
        self.pids: list[int] = []
        self.chunks: int | None = None
        self.last: posthaste_lab.Progress | None = None

    def __call__(self, progress: posthaste_lab.Progress) -> None:
        self.last = progress
        if progress.pid is None:
            return
        self.pids.append(progress.pid)
        if self.killed is None:
            self.killed = progress.pid
            threading.Timer(0.15, self._kill).start()

    def _kill(self) -> None:
        self.chunks = self.pids.count(self.killed)
        os.kill(self.killed, signal.SIGKILL)

    def check(self) -> None:
        """The one that was killed delivered nothing from then on, and others went on."""
        assert self.chunks == self.pids.count(self.killed) > 0
        assert self.pids[-1] != self.killed
