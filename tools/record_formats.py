"""Has PyFlink write and read the files of ``tests/table/formats_by_pyflink.json`` and notes what came of it.

    python tools/record_formats.py tests/table/formats_by_pyflink.json

in an environment with ``apache-flink==2.3.0`` and, in the folder that ``FLINK_JARS`` names, these of Maven Central:
``flink-sql-avro``, ``-orc`` and ``-parquet`` 2.3.0, ``hadoop-client-api`` and ``-runtime`` 3.3.6, ``commons-logging``.

Of a case ``name``, ``format``, ``columns``, ``options``, ``read`` and ``query`` (or ``file``, which is only read then)
are written by hand, ``mode`` (batch unless it is there) and ``zone``, the time zone of the process, where they matter.
What is added: ``file``, the file as Flink wrote it (Base64), ``rows``, what Flink reads of it, or ``refused``, the
class of the exception. Words behind the file's name choose cases. With ``--read-ours folder`` Flink reads files that
a test run left there (``FIRESTEEL_KEEP_FILES``), and what is different is printed.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from recordedkit import shown_value


def environment(settings: EnvironmentSettings) -> TableEnvironment:
    """An environment with the formats."""
    env = TableEnvironment.create(settings)
    jars = sorted(Path(os.environ["FLINK_JARS"]).glob("*.jar"))
    for key, value in (
        ("parallelism.default", "1"),
        ("table.local-time-zone", "UTC"),
        ("pipeline.jars", ";".join(path.as_uri() for path in jars)),
    ):
        env.get_config().set(key, value)
    return env


def declared(env: TableEnvironment, case: dict[str, Any], folder: Path) -> None:
    """Makes the case's table anew, in the time zone that the case says."""
    zones = get_gateway().jvm.java.util.TimeZone
    zones.setDefault(zones.getTimeZone(case.get("zone", "UTC")))
    given = "".join(f", '{key}' = '{value}'" for key, value in case.get("options", {}).items())
    env.execute_sql("DROP TABLE IF EXISTS f")
    env.execute_sql(
        f"CREATE TABLE f ({case['columns']}) WITH ('connector' = 'filesystem', 'path' = '{folder}', "
        f"'format' = '{case['format']}'{given})"
    )


def reason(error: Exception) -> str:
    """The class of the last cause that Java names."""
    return ([*re.findall(r"[\w.]+\.\w+(?:Exception|Error)\b", str(error)), type(error).__name__])[-2:][0]


def rows_of(env: TableEnvironment, case: dict[str, Any]) -> list[Any]:
    """What Flink reads."""
    with env.execute_sql(case["read"]).collect() as rows:
        kinds = case["format"] == "debezium-json"
        return [([str(row.get_row_kind())] if kinds else []) + shown_value(list(row)) for row in rows]


def recorded(env: TableEnvironment, case: dict[str, Any]) -> dict[str, Any]:
    """The case with its results."""
    found = {key: value for key, value in case.items() if key not in ("rows", "refused")}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "f"
        try:
            declared(env, case, target)
            if "query" in case:
                found.pop("file", None)
                env.execute_sql(f"INSERT INTO f {case['query']}").wait()
                (path,) = (each for each in target.rglob("*") if each.is_file())
                found["file"] = base64.b64encode(path.read_bytes()).decode()
            else:
                target.mkdir()
                (target / "a").write_bytes(base64.b64decode(case["file"]))
            found["rows"] = rows_of(env, case)
        except Exception as error:
            found["refused"] = reason(error)
    print(found["name"], found.get("refused") or found["rows"], flush=True)
    return found


def compared(env: TableEnvironment, case: dict[str, Any], folder: Path) -> bool:
    """Whether Flink reads of our file what it reads of its own."""
    declared(env, case, folder / case["name"])
    try:
        found: Any = rows_of(env, case)
    except Exception as error:
        found = reason(error)
    if found != case["rows"]:
        print(f"{case['name']}: {found}\n  instead of {case['rows']}", flush=True)
    return bool(found == case["rows"])


def main() -> None:
    """Records, or compares what we wrote."""
    data = Path(sys.argv[1])
    content = json.loads(data.read_text())
    batch = environment(EnvironmentSettings.in_batch_mode())
    streaming = environment(EnvironmentSettings.in_streaming_mode())
    if "--read-ours" in sys.argv:
        folder = Path(sys.argv[sys.argv.index("--read-ours") + 1])
        cases = [
            case for case in content["cases"] if "query" in case and "rows" in case and (folder / case["name"]).exists()
        ]
        same = sum([compared(streaming if "mode" in case else batch, case, folder) for case in cases])
        sys.exit(f"{same} of {len(cases)} are the same" if same < len(cases) or not cases else 0)
    chosen = sys.argv[2:]
    for place, case in enumerate(content["cases"]):
        if not chosen or any(part in case["name"] for part in chosen):
            content["cases"][place] = recorded(streaming if "mode" in case else batch, case)
            save(content, data)


def save(content: dict[str, Any], data: Path) -> None:
    """A line for each case."""
    lines = ",\n".join("  " + json.dumps(case) for case in content["cases"])
    data.write_text(f'{{\n "pyflink": "2.3.0",\n "cases": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    main()
