"""Runs the scenarios and prints a table. Exit status 1 if a result was lost or came twice."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from kafka_server import KafkaServer, why_not
from postgres_server import PostgresServer

from chaos.kafka_faults import KafkaPoint
from chaos.managed import TARGETS as MANAGED
from chaos.outcome import Outcome, table
from chaos.read_only import can_mount
from chaos.scenario import Scenario, run_kafka_scenario, run_scenario
from firesteel.testing import CrashPoint

ONE_SINK = tuple(point for point in CrashPoint if point is not CrashPoint.BETWEEN_SINKS)
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
    Scenario("SQL: commit protocol", points=ONE_SINK, sql=True),
    Scenario("SQL: driver", ("driver",), 6, sql=True),
    Scenario("SQL: Python worker", ("worker",), 10, sql=True),
    Scenario("SQL: state in pages", ("driver", "worker"), 8, sql=True, in_pages=True),
    Scenario("job managers", MANAGED, 12, spare=15),
)
KAFKA_SCENARIOS = (
    Scenario("Kafka: commit protocol", points=(*ONE_SINK, *KafkaPoint)),
    Scenario("Kafka: driver", ("driver",), 6),
    Scenario("Kafka: Python worker", ("worker",), 8),
    Scenario("Kafka: broker", ("broker",), 6),
    Scenario("Kafka: connections", ("connections",), 12),
    Scenario("Kafka: zombie", ("zombie",), 3),
    Scenario("Kafka: all", ("driver", "worker", "broker", "connections", "zombie"), 12),
)
MECHANISMS = ("two-phase", "commit-log")


def main() -> int:
    # A shell that runs this in the background has it ignore interrupts, and so would the jobs that get some.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = [one.name for one in (*SCENARIOS, *KAFKA_SCENARIOS)]
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--scenario", choices=names, action="append", help="one of them only; may be given again")
    parser.add_argument("--kills", type=int, help="how many kills at random moments, instead of the scenario's own")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments (default 1)")
    parser.add_argument("--without", choices=MECHANISMS, action="append", default=[], help="switch a mechanism off")
    parser.add_argument("--keep", type=Path, help="a folder for all files, which stay there")
    chosen = parser.parse_args()
    wanted = chosen.scenario or names
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        # One line as soon as it is known; the table comes at the end.
        outcomes.append(outcome)
        print(table(outcomes[-1:]).splitlines()[-1], file=sys.stderr, flush=True)

    def as_chosen(one: Scenario) -> Scenario:
        scenario = replace(one, seed=chosen.seed, without=tuple(chosen.without))
        return replace(scenario, kills=chosen.kills) if chosen.kills is not None and one.targets else scenario

    with tempfile.TemporaryDirectory(prefix="firesteel-chaos-") as temporary:
        folder = chosen.keep or Path(temporary)
        if any(one.name in wanted for one in SCENARIOS):
            with PostgresServer() as server:
                for number, one in enumerate(SCENARIOS):
                    if one.name in wanted and may_run(one, Path(temporary)):
                        name = f"chaos_{number}"
                        with server.database(name) as url:
                            parameters = server.parameters(name)
                            del parameters["autocommit"]
                            note(run_scenario(as_chosen(one), folder / name, parameters, url, server.crash))
        if any(one.name in wanted for one in KAFKA_SCENARIOS):
            if (missing := why_not()) is not None:
                print(f"Kafka: left out. {missing}", file=sys.stderr, flush=True)
            else:
                with KafkaServer() as broker:
                    for number, one in enumerate(KAFKA_SCENARIOS):
                        if one.name in wanted:
                            note(run_kafka_scenario(as_chosen(one), folder / f"kafka_{number}", broker))
    print(table(outcomes))
    for outcome in outcomes:
        print(*outcome.explain(), sep="\n", end="\n" if outcome.explain() else "")
    return 0 if outcomes and all(outcome.good for outcome in outcomes) else 1


def may_run(scenario: Scenario, folder: Path) -> bool:
    if "read-only" in scenario.targets and not can_mount(folder / "probe"):
        print(f"{scenario.name}: left out, since this process may not mount", file=sys.stderr, flush=True)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
