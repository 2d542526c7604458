"""Compares Python clients for HTTP/3 over emulated paths: posthaste, aioquic and niquests.

    python bench/compare.py [--rounds 5] [--size 10000000] [--paths lte wifi bad]

One server for all (`posthaste serve`, or `edge` before an application for uploads) at the far end of
`posthaste emulate`. In each round and on each path all clients take their turn, each in an interpreter of its own, in
another order each round; a round that distorted the path is repeated. Prints medians as a table in Markdown, and all
runs as CSV with --csv FILE. Linux; needs what `posthaste emulate` needs, and aioquic and niquests.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from clients import CLIENTS, run

REPOSITORY = Path(__file__).resolve().parents[3]

#: Exit code of `posthaste emulate` for a run in which the machine distorted the path.
VOID = 125

PORT = 4477

#: The address of the far end of a path.
FAR = "198.18.0.1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--size", type=int, default=10_000_000, help="bytes of the object (default 10,000,000)")
    parser.add_argument("--paths", nargs="+", default=["lte", "wifi", "bad"], help="paths of `posthaste emulate`")
    parser.add_argument("--upload", action="store_true", help="send the object instead of fetching it")
    parser.add_argument("--clients", nargs="+", default=list(CLIENTS), choices=list(CLIENTS))
    parser.add_argument("--posthaste", default=str(REPOSITORY / "target/release/posthaste"), help="the command")
    parser.add_argument("--csv", help="file for all runs")
    parser.add_argument("--far", help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run(arguments.one, f"https://{FAR}:{PORT}", arguments.size, arguments.upload)))
    elif arguments.far:
        turns(arguments)
    else:
        compare(arguments)


def turns(arguments: argparse.Namespace) -> None:
    """Within the path: each client once, in the order given."""
    for client in arguments.far.split(","):
        command = [sys.executable, __file__, "--one", client, "--size", str(arguments.size)]
        if arguments.upload:
            command.append("--upload")
        subprocess.run(command, check=True, timeout=120)


def compare(arguments: argparse.Namespace) -> None:
    """All rounds, and the table."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        server = prepare(arguments, Path(folder))
        for number in range(arguments.rounds):
            for path in arguments.paths:
                shift = number % len(arguments.clients)
                order = arguments.clients[shift:] + arguments.clients[:shift]
                for row in one_round(arguments, server, path, order, seed=number + 1):
                    rows.append({"path": path, "round": number + 1, **row})
                    print(rows[-1], file=sys.stderr)
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    print(table(arguments, rows))


def prepare(arguments: argparse.Namespace, folder: Path) -> str:
    """The server's command, with what it serves."""
    root = folder / "root"
    root.mkdir()
    (root / "object").write_bytes(os.urandom(arguments.size))
    serve = f"{arguments.posthaste} serve {root} --listen 0.0.0.0:%d --state {folder}/state --no-access-log"
    if not arguments.upload:
        return serve % PORT
    # The edge answers for names of its certificate only, and the clients ask for the address of the path's end.
    names = f"subjectAltName=IP:{FAR},DNS:localhost"
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost"
    make += f" -addext {names} -keyout {key} -out {certificate}"
    subprocess.run(shlex.split(make), check=True, capture_output=True)
    sink = f"{sys.executable} {Path(__file__).with_name('sink.py')} 4478"
    edge = f"edge --to http://127.0.0.1:4478 --cert {certificate} --key {key} --listen 0.0.0.0:{PORT} --no-access-log"
    return f"{sink} & exec {arguments.posthaste} {edge}"


def one_round(
    arguments: argparse.Namespace, server: str, path: str, order: list[str], seed: int
) -> list[dict[str, object]]:
    """A run of each client over one path; repeated while it is void."""
    inner = [sys.executable, __file__, "--far", ",".join(order), "--size", str(arguments.size)]
    if arguments.upload:
        inner.append("--upload")
    emulate = [arguments.posthaste, "emulate", "-q", "--path", path, "--seed", str(seed), "--far", server, "--"]
    while True:
        wait = ["sh", "-c", 'sleep 1; exec "$@"', "sh"]
        done = subprocess.run(emulate + wait + inner, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != VOID:
            sys.exit(done.stdout + done.stderr)
        print("void, once more", file=sys.stderr)


def table(arguments: argparse.Namespace, rows: list[dict[str, object]]) -> str:
    """Medians by path and client."""
    lines = ["| path | client | time, s | CPU, s | memory, MB |", "|---|---|---|---|---|"]
    for path in arguments.paths:
        for client in arguments.clients:
            own = [row for row in rows if (row["path"], row["client"]) == (path, client)]
            time, cpu, memory = (
                statistics.median(float(str(row[key])) for row in own) for key in ("time", "cpu", "memory")
            )
            lines.append(f"| `{path}` | {client} | {time:.2f} | {cpu:.3f} | {memory:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
