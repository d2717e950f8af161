"""Asks Flink which files of a folder a table with ``source.path.regex-pattern`` reads, for the patterns of
``tests/table/path_patterns_by_pyflink.json``.

    python tools/record_path_patterns.py tests/table/path_patterns_by_pyflink.json [--check]

in an environment with ``apache-flink==2.3.0``. ``files``, and ``pattern`` and ``path`` of a case, are written by hand:
``FOLDER`` stands for the folder. What is added: the files that are read, or why Flink refuses.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment


def recorded(case: dict[str, Any], folder: str) -> dict[str, Any]:
    """The case with what became of it."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    path, pattern = (case[key].replace("FOLDER", folder) for key in ("path", "pattern"))
    found = {"path": case["path"], "pattern": case["pattern"]}
    try:
        env.execute_sql(
            f"CREATE TABLE t (x STRING) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv', "
            f"'source.path.regex-pattern' = '{pattern}')"
        )
        with env.execute_sql("SELECT x FROM t").collect() as rows:
            found["read"] = sorted(row[0] for row in rows)
    except Exception as error:
        causes = [line.strip() for line in str(error).splitlines() if "Exception: " in line]
        found["refused"] = (causes or [str(error)])[-1].partition("Exception: ")[2]
    print(found, flush=True)
    return found


def main() -> None:
    """Records, or compares."""
    data = Path(next(argument for argument in sys.argv[1:] if not argument.startswith("--")))
    content = json.loads(data.read_text())
    with tempfile.TemporaryDirectory() as folder:
        for name in content["files"]:
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            # Each file has a line with its name.
            file.write_text(f"{name}\n")
        cases = [recorded(case, folder) for case in content["cases"]]
    if "--check" in sys.argv:
        sys.exit(0 if cases == content["cases"] else "Flink gives something else.")
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    data.write_text(f'{{\n "files": {json.dumps(content["files"])},\n "cases": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
