"""Has Flink's own CEP operator run scenarios, and keeps what it matches as data for the tests in ``tests/cep``.

``tools/cep_oracle`` is a small Java program around Flink's operator and the harness of Flink's own tests, so watermarks
and the clock are where a scenario says. Maven fetches Flink's jars once; a JDK of 17 or newer compiles the program.
Neither is needed to run the tests::

    .venv/bin/python tools/record_cep.py          # writes tests/data/cep
    .venv/bin/python tools/record_cep.py --check  # compares with what is there

A scenario is a JSON object: ``pattern`` (``steps`` with the calls on each, and ``skip``), ``timeouts`` (whether partial
matches that time out are asked for), ``comparator`` (by value, among events of one time), ``time`` (``processing``, or
event time), and ``input``: ``["e", key, kind, value, timestamp]`` is an event, ``["w", timestamp]`` a watermark,
``["p", timestamp]`` the machine's clock and ``["end"]`` the end of the input. Its ``result`` is ``refused``, or ``out``
with what was emitted in order (``match``, ``timeout``, ``late``) and perhaps an ``error`` that ended it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import cep_facts
import cep_methods
import cep_random
import local_server

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "cep"
SOURCES = Path(__file__).resolve().parent / "cep_oracle"
VERSION = "2.3.0"

SEED = 2026
DRAWN = 4000
RUNS = 2000
REFUSALS = 400

Json = dict[str, Any]


def jars() -> Path:
    """The folder with Flink's jars, fetched if need be."""

    def fetch(folder: Path) -> None:
        local_server.maven("copy-dependencies", "-f", str(SOURCES / "pom.xml"), into=folder, what="Flink's CEP")

    return local_server.fetched(local_server.cache(f"flink-cep-{VERSION}"), fetch)


def run_on_flink(scenarios: list[Json]) -> list[Json]:
    """What Flink makes of each scenario."""
    java, javac = local_server.java(), _javac()
    if java is None or javac is None:
        raise SystemExit("Recording needs a JDK of 17 or newer: there is no java, or no javac.")
    libraries = f"{jars()}/*"
    with tempfile.TemporaryDirectory() as classes:
        sources = sorted(map(str, SOURCES.glob("*.java")))
        subprocess.run([javac, "-d", classes, "-cp", libraries, *sources], check=True)
        command = [java, *local_server.SMALL_JVM, "-Xmx512m", "-cp", f"{classes}:{libraries}", "CepOracle"]
        lines = "".join(f"{_json(one)}\n" for one in scenarios)
        done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    if len(results) != len(scenarios):
        raise SystemExit(f"There are {len(results)} results of {len(scenarios)} scenarios.")
    return results


def _javac() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "javac")) if home else shutil.which("javac")


def record() -> dict[str, list[Json]]:
    """The scenarios of each file, with their results."""
    by_hand = cep_methods.scenarios() + cep_facts.scenarios()
    drawn = list(islice(cep_random.scenarios(SEED), DRAWN))
    results = run_on_flink(by_hand + drawn)
    random = list(zip(drawn, results[len(by_hand) :], strict=True))
    return {
        "by_hand": [_with(*one) for one in zip(by_hand, results, strict=False)],
        "random": [_with(*one) for one in islice(_telling(random), RUNS)],
        "refused": [_with(*one) for one in islice(_refused(random), REFUSALS)],
    }


def _telling(random: list[tuple[Json, Json]]) -> Iterator[tuple[Json, Json]]:
    """Scenarios that ran, few of them without any output, and none with very much."""
    silent = 0
    for scenario, result in random:
        # Flink itself fails with a null pointer where only an optional group comes before a not.
        if "refused" in result or result.get("error") == "NullPointerException" or len(result["out"]) > 40:
            continue
        if not result["out"]:
            silent += 1
            if silent % 5:
                continue
        yield scenario, result


def _refused(random: list[tuple[Json, Json]]) -> Iterator[tuple[Json, Json]]:
    """Scenarios that were refused, not too many for one reason."""
    reasons: Counter[str] = Counter()
    for scenario, result in random:
        if "refused" in result:
            reason = result["why"].split(":")[0]
            reasons[reason] += 1
            if reasons[reason] <= 60:
                # What comes in does not matter.
                yield scenario | {"input": []}, result


def _with(scenario: Json, result: Json) -> Json:
    return scenario | {"result": {name: value for name, value in result.items() if name != "why"}}


def _json(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Records what Flink's CEP makes of scenarios.")
    parser.add_argument("--check", action="store_true", help="compare with what was recorded, and write nothing")
    check = parser.parse_args().check
    different = 0
    for name, scenarios in record().items():
        path = DATA / f"{name}.json.gz"
        content = "".join(f"{_json(one)}\n" for one in scenarios).encode()
        print(f"{path.relative_to(ROOT)}: {len(scenarios)} scenarios")
        if check:
            if not path.exists() or gzip.decompress(path.read_bytes()) != content:
                different += 1
                print("  differs from what was recorded")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(content, 9, mtime=0))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
