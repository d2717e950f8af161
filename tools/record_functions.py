"""Asks PyFlink for the types and values of calls in ``tests/table/function_matrix.json`` that have none yet.

    python tools/record_functions.py [tests/table/function_matrix.json]

in an environment with ``apache-flink==2.3.0``. A call is added to a group by hand, with null for its result; this makes
``[type, value as text]`` of it, or ``["refused", null]`` where Flink takes the call for wrong, and ``["fails", null]``
where it fails when it runs. Many calls run in one query, because a query takes Flink seconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

DATA = Path(__file__).parent.parent / "tests" / "table" / "function_matrix.json"
AT_ONCE = 60


def environment() -> TableEnvironment:
    """All times are of UTC."""
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    return env


def type_of(env: TableEnvironment, call: str) -> str | None:
    """The type of a call; None if Flink takes it for wrong."""
    try:
        schema = env.sql_query(f"SELECT {call} AS x")._j_table.getResolvedSchema()
        return str(schema.getColumnDataTypes().get(0).getLogicalType().asSummaryString())
    except Exception:
        return None


def values_of(env: TableEnvironment, calls: list[str], kinds: dict[str, str]) -> dict[str, Any]:
    """The values as text; halves of what fails are tried by themselves."""
    shown = ", ".join(
        # A text is as it is; CAST would be one more function.
        (
            f"{call} AS x{at}"
            if kinds[call].startswith(("CHAR", "VARCHAR", "STRING"))
            else f"CAST({call} AS STRING) AS x{at}"
        )
        for at, call in enumerate(calls)
    )
    try:
        with env.execute_sql(f"SELECT {shown}").collect() as rows:
            (row,) = list(rows)
        return {call: [kinds[call], value] for call, value in zip(calls, row, strict=True)}
    except Exception:
        if len(calls) == 1:
            return {calls[0]: ["fails", None]}
        middle = len(calls) // 2
        return values_of(env, calls[:middle], kinds) | values_of(env, calls[middle:], kinds)


def written(content: dict[str, dict[str, Any]]) -> str:
    """A line for each call."""
    groups = []
    for name, calls in sorted(content.items()):
        lines = ",\n".join(f"{_shown(call)}: {_shown(result)}" for call, result in calls.items())
        groups.append(f"{_shown(name)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(groups) + "\n}\n"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Fills in what is missing."""
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    content: dict[str, dict[str, Any]] = json.loads(data.read_text())
    env = environment()
    for name, group in content.items():
        missing = [call for call, result in group.items() if result is None]
        kinds = {call: type_of(env, call) for call in missing}
        group |= {call: ["refused", None] for call, kind in kinds.items() if kind is None}
        known = {call: kind for call, kind in kinds.items() if kind is not None}
        calls = list(known)
        for start in range(0, len(calls), AT_ONCE):
            group |= values_of(env, calls[start : start + AT_ONCE], known)
        if missing:
            print(name, len(missing), flush=True)
            data.write_text(written(content))


if __name__ == "__main__":
    main()
