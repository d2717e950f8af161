"""What the examples of state print, to the letter."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXPECTED = {
    "state_periodic_views.py": [
        "input> Click(user='Mary', url='./home', time=1000)",
        "input> Click(user='Bob', url='./cart', time=2000)",
        "input> Click(user='Mary', url='./prod?id=1', time=4000)",
        "input> Click(user='Mary', url='./prod?id=2', time=9000)",
        "input> Click(user='Bob', url='./home', time=11500)",
        "input> Click(user='Mary', url='./cart', time=13000)",
        "input> Click(user='Mary', url='./home', time=22000)",
        "input> Click(user='Bob', url='./prod?id=1', time=30000)",
        "Mary pv: 3",
        "Bob pv: 2",
        "Mary pv: 5",
        "Bob pv: 3",
    ],
    "state_full_join.py": [
        "('a', 'stream-1', 1000) => ('a', 'stream-2', 3000)",
        "('a', 'stream-1', 2500) => ('a', 'stream-2', 3000)",
        "('b', 'stream-1', 2000) => ('b', 'stream-2', 4000)",
    ],
    "state_fake_window.py": [
        "url: ./home views: 3 window: 0 ~ 10000",
        "url: ./cart views: 1 window: 0 ~ 10000",
        "url: ./home views: 2 window: 10000 ~ 20000",
        "url: ./cart views: 1 window: 10000 ~ 20000",
        "url: ./home views: 1 window: 20000 ~ 30000",
    ],
    "state_average_time.py": ["Mary average time: 3200", "Bob average time: 6400"],
    "state_buffering_sink.py": [
        "Mary ./home 0",
        "Alice ./cart 1000",
        "Bob ./fav 2000",
        "Cary ./home 3000",
        "Mary ./cart 4000",
        "Alice ./fav 5000",
        "Bob ./home 6000",
        "Cary ./cart 7000",
        "Mary ./fav 8000",
        "Alice ./home 9000",
        "==========",
        "Bob ./cart 10000",
        "Cary ./fav 11000",
        "Mary ./home 12000",
        "Alice ./cart 13000",
        "Bob ./fav 14000",
        "Cary ./home 15000",
        "Mary ./cart 16000",
        "Alice ./fav 17000",
        "Bob ./home 18000",
        "Cary ./cart 19000",
        "==========",
    ],
    "state_pattern_detector.py": [
        "(Alice, Pattern(first='login', then='pay'))",
        "(Bob, Pattern(first='login', then='buy'))",
    ],
    "state_deduplication.py": [
        "Order(id='o-1', amount=20)",
        "Order(id='o-2', amount=35)",
        "Order(id='o-3', amount=10)",
        "Order(id='o-4', amount=35)",
    ],
    "state_temperature_alarm.py": [
        "sensor-1: 3 rises in a row, now 37.0",
        "sensor-2: no fall for 10 s, at 13.5 s",
    ],
    "state_time_to_live.py": [
        *(f"Alice: visit {n}" for n in range(1, 4)),
        *(f"Bob: visit {n}" for n in range(1, 13)),
        *(f"Alice: visit {n}" for n in range(1, 4)),
    ],
}


def test_every_example_of_state_is_here() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("state_*.py")) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_prints(run: Any, name: str) -> None:
    assert run(name) == EXPECTED[name]


def test_duplicates_are_found_by_many_subtasks_too(run: Any) -> None:
    lines = [re.sub(r"^\d+> ", "", line) for line in run("state_deduplication.py", "--parallelism", "3")]
    assert sorted(lines) == EXPECTED["state_deduplication.py"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["state_periodic_views.py", "state_buffering_sink.py", "state_pattern_detector.py"])
def test_prints_the_same_on_spark(run: Any, name: str) -> None:
    assert run(name, master="local") == EXPECTED[name]


def test_a_job_is_upgraded(run: Any) -> None:
    version, left, *told = run("savepoint_upgrade.py")
    assert version == "version 1 has counted True ['Alice', 'Bob', 'robot']"
    assert left == "left: ['Alice', 'Bob']"
    # Alice and Bob go on where they were, the robot begins anew. How far the first version came is a matter of time.
    clicks = {user: [int(line.split()[-1]) for line in told if f" {user}:" in line] for user in ("Alice", "robot")}
    assert clicks["robot"][:2] == [10, 20]
    assert clicks["Alice"][0] > 10
