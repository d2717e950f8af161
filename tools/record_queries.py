"""Runs the programs of a file such as ``tests/table/joins_by_pyflink.json`` with PyFlink and notes what they give.

    python tools/record_queries.py tests/table/joins_by_pyflink.json [--check]

in an environment with ``apache-flink==2.3.0``. ``mode`` (streaming unless it is there), ``settings``, ``setup`` and
``programs`` (name, sql, compare) are written by hand; columns and rows, in batch mode their types, or the reason why
Flink refuses, are what this adds. ``--check`` only compares.
"""

from __future__ import annotations

import datetime
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment


def shown(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list):
        return [shown(each) for each in value]
    return str(value) if isinstance(value, Decimal) else value


def reason(error: Exception) -> str:
    """The last cause that Java names."""
    lines = [line.strip() for line in str(error).splitlines() if not line.strip().startswith("at ")]
    causes = [line for line in lines if "Exception" in line]
    return (causes or lines)[-1][:200]


def recorded(env: TableEnvironment, program: dict[str, Any], typed: bool = False) -> dict[str, Any]:
    """The program with its results."""
    found = {key: program[key] for key in ("name", "sql", "compare")}
    try:
        result = env.execute_sql(program["sql"])
        found["columns"] = result.get_table_schema().get_field_names()
        if typed:
            width = len(found["columns"])
            types = [result._j_table_result.getResolvedSchema().getColumnDataTypes().get(i) for i in range(width)]
            found["types"] = [each.getLogicalType().asSummaryString() for each in types]
        with result.collect() as rows:
            found["rows"] = [[str(row.get_row_kind()), *map(shown, row)] for row in rows]
    except Exception as error:
        found.pop("columns", None)
        found["refused"] = reason(error)
    print(found["name"], found.get("refused") or len(found["rows"]), flush=True)
    return found


def main() -> None:
    """Records, or compares."""
    data = Path(next(argument for argument in sys.argv[1:] if not argument.startswith("--")))
    content = json.loads(data.read_text())
    batch = content.get("mode") == "batch"
    env = TableEnvironment.create(
        EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    )
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    settings = content.get("settings", {})
    for key, value in settings.items():
        env.get_config().set(key, value)
    for statement in content["setup"]:
        env.execute_sql(statement)
    programs = [recorded(env, program, batch) for program in content["programs"]]
    if "--check" in sys.argv:
        differing = [new["name"] for new, old in zip(programs, content["programs"], strict=True) if new != old]
        sys.exit(f"{len(differing)} differ: {', '.join(differing)}" if differing else 0)
    setup = json.dumps(content["setup"], indent=2).replace("\n", "\n ")
    lines = ",\n".join("  " + json.dumps(program) for program in programs)
    mode = '\n "mode": "batch",' if batch else ""
    more = f'\n "settings": {json.dumps(settings)},' if settings else ""
    data.write_text(f'{{{mode}{more}\n "setup": {setup},\n "programs": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
