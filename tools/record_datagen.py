"""Asks Flink which options of ``datagen`` columns may have, for the cases of ``tests/table/datagen_by_pyflink.json``.

    python tools/record_datagen.py tests/table/datagen_by_pyflink.json [--check]

in an environment with ``apache-flink==2.3.0``. ``columns`` and ``options`` of a case are written by hand, and so is
``taken`` (refused by Flink, and taken by us) or ``wrong`` (the other way round). What is added: how many rows
there are, or why Flink refuses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment


def recorded(case: dict[str, Any]) -> dict[str, Any]:
    """The case with what became of it."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    given = "".join(f", '{key}' = '{value}'" for key, value in case["options"].items())
    found = {key: case[key] for key in ("columns", "options", "taken", "wrong") if key in case}
    try:
        env.execute_sql(f"CREATE TABLE made ({case['columns']}) WITH ('connector' = 'datagen'{given})")
        # As Java has it: Python would convert values, which takes some types only.
        with_rows = env.execute_sql("SELECT * FROM made")._j_table_result.collect()
        rows = 0
        while with_rows.hasNext():
            with_rows.next()
            rows += 1
        found["rows"] = rows
    except Exception as error:
        causes = [line.strip() for line in str(error).splitlines() if "Exception: " in line]
        found["refused"] = (causes or [str(error)])[-1].partition("Exception: ")[2]
    print(found, flush=True)
    return found


def main() -> None:
    """Records, or compares."""
    data = Path(next(argument for argument in sys.argv[1:] if not argument.startswith("--")))
    content = json.loads(data.read_text())
    cases = [recorded(case) for case in content["cases"]]
    if "--check" in sys.argv:
        sys.exit(0 if cases == content["cases"] else "Flink gives something else.")
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    data.write_text(f'{{\n "cases": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
