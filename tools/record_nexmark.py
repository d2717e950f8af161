"""Runs Nexmark's queries with PyFlink and writes the tables they give to ``tests/table/nexmark_by_pyflink.json``.

    python tools/record_nexmark.py [--check]

in an environment with ``apache-flink==2.3.0``. Of a large table its digest is kept. ``--check`` only compares.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks" / "programs"), str(HERE.parent / "tests")]

from nexmark_files import declarations, write_files  # noqa: E402
from nexmark_queries import QUERIES  # noqa: E402
from pyflink.table import EnvironmentSettings, TableEnvironment  # noqa: E402
from record_queries import recorded  # noqa: E402
from recordedkit import NEXMARK_EVENTS, NEXMARK_STRETCH, summary  # noqa: E402

DATA = HERE.parent / "tests" / "table" / "nexmark_by_pyflink.json"


def main() -> None:
    """Records, or compares."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), NEXMARK_EVENTS, NEXMARK_STRETCH)
        env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        env.get_config().set("parallelism.default", "1")
        for statement in declarations(Path(folder)):
            env.execute_sql(statement)
        for name, sql in QUERIES.items():
            program = recorded(env, {"name": name, "sql": sql, "compare": "table"})
            if "refused" in program:
                found[name] = {"refused": program["refused"]}
            else:
                found[name] = {"columns": program["columns"], **summary(program["rows"])}
    if "--check" in sys.argv:
        differing = [name for name, kept in json.loads(DATA.read_text()).items() if found[name] != kept]
        sys.exit(f"{len(differing)} differ: {', '.join(differing)}" if differing else 0)
    DATA.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
