"""Has PyFlink write and read the topics of ``tests/semantics/kafka_tables_by_pyflink.json`` and notes what came of it.

    .venv/bin/python tools/record_kafka_tables.py [words that choose cases]

with PyFlink in ``.bench/pyflink`` and, in the folder that ``FLINK_JARS`` names, ``flink-sql-connector-kafka``
5.0.0-2.2 and ``flink-sql-avro`` 2.3.0 of Maven Central. Of a case ``name``, ``columns``, ``options``, ``read`` and
``query`` (or ``messages``, which are only read then) are written by hand. What is added: ``messages``, as Flink wrote
them, ``rows``, the changes that Flink reads of them, or ``refused``, the class of the exception.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "semantics" / "kafka_tables_by_pyflink.json"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]


def run_in_pyflink(work: list[dict[str, Any]]) -> None:
    """What runs in PyFlink's process: all statements of all cases."""
    from pyflink.table import EnvironmentSettings, TableEnvironment
    from record_formats import reason
    from recordedkit import shown_value

    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    jars = sorted(Path(os.environ["FLINK_JARS"]).glob("*.jar"))
    for key, value in (
        ("parallelism.default", "1"),
        ("table.local-time-zone", "UTC"),
        ("pipeline.jars", ";".join(path.as_uri() for path in jars)),
    ):
        env.get_config().set(key, value)
    for case in work:
        try:
            env.execute_sql("DROP TABLE IF EXISTS f")
            env.execute_sql(case["table"])
            if "query" in case:
                env.execute_sql(f"INSERT INTO f {case['query']}").wait()
            with env.execute_sql(case["read"]).collect() as rows:
                case["rows"] = [[str(row.get_row_kind()), *shown_value(list(row))] for row in rows]
        except Exception as error:
            case["refused"] = reason(error)
        print(case["name"], case.get("refused") or case["rows"], file=sys.stderr, flush=True)
    print(json.dumps(work))


def record(chosen: list[str]) -> None:
    """Gives PyFlink the topics, and takes its messages."""
    from kafka_server import KafkaServer
    from kafkakit import Broker
    from kafkatablekit import declaration, noted, outgoing

    content = json.loads(DATA.read_text())
    cases = [case for case in content["cases"] if not chosen or any(word in case["name"] for word in chosen)]
    with KafkaServer() as server:
        broker = Broker(server)
        work = []
        for case in cases:
            topic = broker.topic([] if "query" in case else [outgoing(each) for each in case["messages"]])
            case["topic"] = topic
            work.append({**case, "table": declaration(case, topic, broker.servers)})
        with tempfile.TemporaryDirectory() as folder:
            given = Path(folder) / "work.json"
            given.write_text(json.dumps(work))
            command = [str(ROOT / ".bench/pyflink/bin/python"), str(Path(__file__)), "--inside", str(given)]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        for case, done in zip(cases, json.loads(answer.splitlines()[-1]), strict=True):
            topic = case.pop("topic")
            case.pop("rows", None), case.pop("refused", None)
            if "query" in case:
                case["messages"] = [noted(each) for each in broker.messages(topic)]
            case.update({key: done[key] for key in ("rows", "refused") if key in done})
    lines = ",\n".join("  " + json.dumps(case) for case in content["cases"])
    DATA.write_text(f'{{\n "pyflink": "2.3.0",\n "cases": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    if "--inside" in sys.argv:
        run_in_pyflink(json.loads(Path(sys.argv[-1]).read_text()))
    else:
        record(sys.argv[1:])
