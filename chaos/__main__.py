"""Runs the scenarios and prints a table. Exit status 1 if a result was lost or came twice."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from chaos.outcome import Outcome, table
from chaos.read_only import can_mount
from chaos.scenario import Scenario, run_scenario
from firesteel.testing import CrashPoint

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from postgres_server import PostgresServer

SCENARIOS = (
    Scenario("commit protocol", points=tuple(CrashPoint)),
    Scenario("start", early=10),
    Scenario("signals", ("interrupt", "terminate", "second start"), 9),
    Scenario("driver", ("driver",), 12),
    Scenario("Python worker", ("worker",), 16),
    Scenario("database", ("database",), 8),
    Scenario("read-only folder", ("read-only",), 6),
    Scenario("cluster: executor", ("executor",), 10, cluster=True),
    Scenario("cluster: all", ("driver", "worker", "executor"), 10, cluster=True),
)
MECHANISMS = ("two-phase", "commit-log")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--scenario", choices=[one.name for one in SCENARIOS], help="one of them only")
    parser.add_argument("--kills", type=int, help="how many kills at random moments, instead of the scenario's own")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments (default 1)")
    parser.add_argument("--without", choices=MECHANISMS, action="append", default=[], help="switch a mechanism off")
    parser.add_argument("--keep", type=Path, help="a folder for all files, which stay there")
    chosen = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="firesteel-chaos-") as temporary, PostgresServer() as server:
        for number, one in enumerate(SCENARIOS):
            if chosen.scenario not in (None, one.name):
                continue
            if "read-only" in one.targets and not can_mount(Path(temporary) / "probe"):
                print(f"{one.name}: left out, since this process may not mount", file=sys.stderr, flush=True)
                continue
            scenario = replace(one, seed=chosen.seed, without=tuple(chosen.without))
            if chosen.kills is not None and scenario.targets:
                scenario = replace(scenario, kills=chosen.kills)
            name = f"chaos_{number}"
            with server.database(name) as url:
                parameters = server.parameters(name)
                del parameters["autocommit"]
                folder = (chosen.keep or Path(temporary)) / name
                outcomes.append(run_scenario(scenario, folder, parameters, url, server.crash))
            # One line as soon as it is known; the table comes at the end.
            print(table(outcomes[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(outcomes))
    for outcome in outcomes:
        print(*outcome.explain(), sep="\n", end="\n" if outcome.explain() else "")
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
