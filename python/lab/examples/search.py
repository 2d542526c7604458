"""Searches two constants of a profile for short fetches, with a bound on what a neighbour may lose by them.

    python/.venv/bin/python python/lab/examples/search.py --trials 60

The profile is ``mobile``; the constants are its start's: ``rate``, the rate of the first flight on a fast path, and ``share``,
how much of what trains of packets promise the window jumps to. The objective is the completion time of 100 kB and 1 MB over
three paths that lose packets, as a ratio to the profile as it is. The bound: a neighbour, an endless download by the model of
Linux's TCP, must keep ``BOUND`` of the goodput that it has when the same fetches are made by plain CUBIC. The best constants
are judged with seeds that took no part in the search. docs/results/search.md has what it found.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import optuna

import posthaste_lab as lab

BOUND = 0.95
"""Least goodput of the neighbour, as a share of what it has next to plain CUBIC."""

HAND_SET = {"rate": 48.0, "share": 0.5}
"""The constants of the profile as it is: Mbit/s, and a share of 1."""

PATHS = {
    "good": {"rtt": "38ms", "rate": "100mbit", "loss": "1%", "up-loss": "0%"},
    "average": {"rtt": "50ms", "rate": "100mbit", "loss": "2%", "up-loss": "0%"},
    "bad": {"rtt": "188ms", "rate": "100mbit", "loss": "8%", "up-loss": "0%"},
}

CROWDED = {"rtt": "40ms", "queue": "1bdp"}

RATES = ("10mbit", "30mbit")
"""Rates of the bottleneck that the neighbour shares."""


Spec = Callable[[int], dict[str, Any]]
"""The description of the run with a seed."""


class Judged(NamedTuple):
    """What a pair of constants is worth."""

    time: float
    """Geometric mean of completion times over those of the profile as it is; less is better."""
    neighbour: float
    """The neighbour's goodput over what it has next to plain CUBIC, the least of the rates."""
    cells: dict[str, float]
    """The ratio of times of each path and object."""


def profile(constants: dict[str, float]) -> lab.Profile:
    """``mobile`` with these constants; without the code over the ends of streams, which browsers do not have."""
    return lab.Profile("mobile", code=False, rate=f"{constants['rate']:.1f}mbit", share=round(constants["share"], 3))


def fetch(path: dict[str, Any], size: str, stack: lab.Profile) -> dict[str, Any]:
    """One object over a path of one's own."""
    return {
        "network": {"kind": "simple", "path": path},
        "flows": [{"stack": stack, "workload": {"kind": "bulk", "object": size}}],
        "deadline": "120s",
    }


def crowded(rate: str, stack: lab.Profile, seed: int) -> dict[str, Any]:
    """Five fetches, one in each second, next to a download that has begun 3 s before and goes on; the neighbour is the last
    flow. When a fetch begins follows from the seed: nothing else in this run is random, and what a neighbour loses depends on
    where in its cycle it is met."""
    bulk = {"kind": "bulk", "object": "300kB"}
    offsets = random.Random(seed)
    starts = [f"{second + offsets.random():.3f}s" for second in range(3, 8)]
    fetches = [{"stack": stack, "workload": bulk, "start": start} for start in starts]
    neighbour = {"name": "neighbour", "stack": "tcp:cubic", "workload": {"kind": "endless"}}
    path = {**CROWDED, "rate": rate}
    return {"network": {"kind": "dumbbell", "path": path}, "flows": [*fetches, neighbour], "deadline": "10s"}


class Judge:
    """Makes the runs of a choice of seeds, on all processors: other threads go on during a run."""

    def __init__(self, pool: ThreadPoolExecutor, seeds: range) -> None:
        self._pool = pool
        self._seeds = seeds
        self._usual = self._times(profile(HAND_SET))
        self._fair = self._neighbours(lab.Profile("cubic"))

    def __call__(self, constants: dict[str, float]) -> Judged:
        stack = profile(constants)
        times, neighbours = self._times(stack), self._neighbours(stack)
        ratios = {cell: mean_ratio(times[cell], self._usual[cell]) for cell in times}
        kept = min(sum(neighbours[rate]) / sum(self._fair[rate]) for rate in RATES)
        return Judged(statistics.geometric_mean(ratios.values()), kept, ratios)

    def _times(self, stack: lab.Profile) -> dict[str, list[float]]:
        cells = [(name, size) for name in PATHS for size in ("100kB", "1MB")]
        specs = {f"{name} {size}": lambda _, name=name, size=size: fetch(PATHS[name], size, stack) for name, size in cells}
        return self._all(specs, lambda run: run["flows"][0]["completion"])

    def _neighbours(self, stack: lab.Profile) -> dict[str, list[float]]:
        specs = {rate: lambda seed, rate=rate: crowded(rate, stack, seed) for rate in RATES}
        return self._all(specs, lambda run: run["flows"][-1]["goodput"])

    def _all(self, specs: dict[str, Spec], figure: Callable[[dict[str, Any]], float]) -> dict[str, list[float]]:
        def make(spec: Spec, seed: int) -> float:
            return figure(lab.run(spec(seed), seed))

        runs = {name: [self._pool.submit(make, spec, seed) for seed in self._seeds] for name, spec in specs.items()}
        return {name: [run.result() for run in started] for name, started in runs.items()}


def mean_ratio(times: list[float], usual: list[float]) -> float:
    """Geometric mean of ratios of runs with the same seed."""
    return math.exp(statistics.fmean(math.log(one / other) for one, other in zip(times, usual, strict=True)))


def search(judge: Judge, trials: int, seed: int) -> list[optuna.trial.FrozenTrial]:
    """All trials: the hand-set constants first, then what the sampler proposes."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
    study.enqueue_trial(HAND_SET)

    def objective(trial: optuna.Trial) -> float:
        constants = {
            "rate": trial.suggest_float("rate", 6.0, 200.0, log=True),
            "share": trial.suggest_float("share", 0.1, 1.0),
        }
        judged = judge(constants)
        trial.set_user_attr("neighbour", judged.neighbour)
        # Above 0 is a violation.
        trial.set_constraint("neighbour", BOUND - judged.neighbour)
        return judged.time

    study.optimize(objective, n_trials=trials)
    return study.trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each trial, from 0 on")
    parser.add_argument("--judged", type=int, default=40, help="seeds of the judgement, from 1000 on")
    options = parser.parse_args()
    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        trials = search(Judge(pool, range(options.seeds)), options.trials, seed=1)
        permitted = [trial for trial in trials if trial.user_attrs["neighbour"] >= BOUND]
        print(f"{len(trials)} trials in {time.monotonic() - began:.0f} s, {len(permitted)} within the bound")
        show(trials, permitted)
        judge = Judge(pool, range(1000, 1000 + options.judged))
        print(f"\nJudged with {options.judged} other seeds:")
        choices = {"hand-set": HAND_SET, "plain best": best(trials).params}
        if permitted:
            choices["best within the bound"] = best(permitted).params
        for name, constants in choices.items():
            judged = judge(constants)
            cells = ", ".join(f"{cell} {ratio:.3f}" for cell, ratio in judged.cells.items())
            print(f"{name}: {profile(constants).name}: time {judged.time:.3f}, neighbour {judged.neighbour:.3f} ({cells})")


def best(trials: list[optuna.trial.FrozenTrial]) -> optuna.trial.FrozenTrial:
    return min(trials, key=lambda trial: trial.value)


def show(trials: list[optuna.trial.FrozenTrial], permitted: list[optuna.trial.FrozenTrial]) -> None:
    """The hand-set constants and the five best."""
    print("rate (Mbit/s)  share  time   neighbour")
    for trial in [trials[0], *sorted(permitted, key=lambda trial: trial.value)[:5]]:
        constants = trial.params
        row = f"{constants['rate']:13.1f} {constants['share']:6.3f} {trial.value:6.3f} {trial.user_attrs['neighbour']:6.3f}"
        print(row + ("  hand-set" if trial is trials[0] else ""))


if __name__ == "__main__":
    main()
