"""Runs the INSERTs of a file such as ``tests/table/conflicts_by_pyflink.json`` with PyFlink and notes what tables of
the connector ``print`` print.

    python tools/record_inserts.py tests/table/conflicts_by_pyflink.json [--check]

in an environment with ``apache-flink==2.3.0``. ``setup`` and of each program ``name``, ``sql`` and ``settings`` are
written by hand; ``printed``, and the reason why Flink refuses or fails, are what this adds. ``--check`` only compares.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment


def reason(error: Exception) -> str:
    """The last cause that Java names."""
    causes = [line.strip() for line in str(error).splitlines() if "Exception: " in line]
    return (causes or str(error).splitlines())[-1].partition("Exception: ")[2]


def recorded(setup: list[str], program: dict[str, Any], output: Path) -> dict[str, Any]:
    """The program with what it gives, in an environment of its own."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    for statement in setup:
        env.execute_sql(statement)
    for key, value in program.get("settings", {}).items():
        env.get_config().set(key, value)
    found = {key: program[key] for key in ("name", "settings", "sql") if key in program}
    before = output.stat().st_size
    try:
        env.execute_sql(program["sql"]).wait()
    except Exception as error:
        found["refused"] = reason(error)
    with output.open() as lines:
        lines.seek(before)
        printed = lines.read().splitlines()
    if printed or "refused" not in found:
        found["printed"] = printed
    print(found["name"], found.get("refused", "")[:100] or len(printed), file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Records, or compares."""
    data = Path(next(argument for argument in sys.argv[1:] if not argument.startswith("--")))
    content = json.loads(data.read_text())
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        # Java inherits it when it starts: a table that prints prints there.
        os.dup2(os.open(output, os.O_CREAT | os.O_WRONLY | os.O_APPEND), 1)
        programs = [recorded(content["setup"], program, output) for program in content["programs"]]
    if "--check" in sys.argv:
        differing = [new["name"] for new, old in zip(programs, content["programs"], strict=True) if new != old]
        sys.exit(f"{len(differing)} differ: {', '.join(differing)}" if differing else 0)
    setup = json.dumps(content["setup"], indent=2).replace("\n", "\n ")
    lines = ",\n".join("  " + json.dumps(program) for program in programs)
    data.write_text(f'{{\n "setup": {setup},\n "programs": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
