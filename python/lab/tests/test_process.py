"""Interrupts, forks and ends of interpreters, each in one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import python

# A run of many seconds.
LONG = """
import os, sys, threading, time
import posthaste_lab as lab
flow = {"stack": "cubic", "workload": {"kind": "bulk", "object": "2GB"}}
long = {"network": {"kind": "simple", "path": lab.Path(rate="400mbit", rtt="40ms")}, "flows": [flow], "deadline": "3600s"}
short = {**long, "flows": [{"stack": "cubic", "workload": {"kind": "bulk", "object": "20kB"}}]}
"""


def test_other_threads_go_on_during_a_run():
    program = """
ticks = []
def tick():
    while True:
        ticks.append(1)
        time.sleep(0.001)
threading.Thread(target=tick, daemon=True).start()
before = len(ticks)
lab.run({**long, "flows": [{"stack": "cubic", "workload": {"kind": "bulk", "object": "20MB"}}]})
print(len(ticks) - before)
"""
    run = python(LONG + program)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 10


@pytest.mark.parametrize(
    "work", ["lab.run(long)", 'lab.sweep("hs-simple", cells="path=bad,object=10MB", workers=2, progress=False)']
)
def test_an_interpreter_exits_while_runs_go_on(work):
    began = time.monotonic()
    run = python(LONG + f"threading.Thread(target=lambda: {work}, daemon=True).start()\ntime.sleep(1.0)\nprint('end')")
    assert (run.returncode, run.stdout) == (0, "end\n"), run.stderr
    assert "panic" not in run.stderr and "Fatal" not in run.stderr
    assert time.monotonic() - began < 30


def test_workers_end_with_an_interpreter_that_is_killed():
    program = """
def tell(progress):
    print(progress.pid, flush=True)
lab.sweep("hs-simple", cells="path=good,object=1MB", workers=2, progress=tell)
"""
    owner = subprocess.Popen([sys.executable, "-c", LONG + program], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    worker = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and is_running(worker):
        time.sleep(0.05)
    assert not is_running(worker)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "work", ["lab.run(long)", 'lab.sweep("hs-simple", cells="path=bad,object=10MB", workers=2, progress=False)']
)
def test_an_interrupt_returns_at_once_and_leaves_no_worker(work):
    # Whoever starts the tests in the background of a shell has them ignore interrupts.
    program = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(1.0, lambda: print("soon", flush=True)).start()
try:
    {work}
except KeyboardInterrupt:
    children = open(f"/proc/self/task/{{os.getpid()}}/children").read()
    print("interrupted", repr(children), lab.run(short)["outcome"])
"""
    process = subprocess.Popen([sys.executable, "-c", LONG + program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "soon\n"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted '' completed\n"
    assert process.wait(timeout=30) == 0
    assert time.monotonic() - began < 20


FORK = """
read, write = os.pipe()
child = os.fork()
if child == 0:
    try:
        text = lab.run(short)["outcome"] + " " + lab.sweep("smoke", workers=1, progress=False).name
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    os.write(write, text.encode())
    os._exit(0)
os.close(write)
text = b""
while data := os.read(read, 4096):
    text += data
print(os.waitpid(child, 0)[1], text.decode(), flush=True)
print(lab.run(short)["outcome"])
os._exit(0)
"""


def test_a_fork_after_import_is_safe():
    run = python(LONG + 'lab.run(short)\nlab.sweep("smoke", workers=1, progress=False)\n' + FORK)
    assert run.stdout == "0 completed smoke\ncompleted\n", run.stderr


def test_a_fork_during_a_run_is_told():
    run = python(LONG + "threading.Thread(target=lab.run, args=(long,), daemon=True).start()\ntime.sleep(0.5)\n" + FORK)
    told = "RunError: this process was forked while runs were under way, and can make none itself: start processes"
    assert run.stdout.startswith(f"0 {told}"), run.stderr
    assert run.stdout.endswith("\ncompleted\n")


def test_multiprocessing_by_spawn_works(tmp_path):
    path = tmp_path / "spawned.py"
    path.write_text(
        LONG
        + """
import multiprocessing
def work(seed):
    return lab.run(short, seed)["trace_hash"]
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(work, range(2)) == [work(0), work(1)]
"""
    )
    assert subprocess.run([sys.executable, path], check=False, timeout=60, env=os.environ).returncode == 0
