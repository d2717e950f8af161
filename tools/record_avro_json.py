"""Asks Flink for messages of ``avro.encoding`` = ``json`` in ``tests/table/avro_json_by_pyflink.json``.

    python tools/record_avro_json.py tests/table/avro_json_by_pyflink.json

in an environment with ``apache-flink==2.3.0`` and, in the folder that ``FLINK_JARS`` names, ``flink-sql-avro``. Of a
case ``columns`` and ``rows`` (as Flink's format ``json`` reads them) are written by hand, or ``messages`` in Avro's
JSON. What is added: the messages of rows, and what Flink's format ``json`` writes of messages that it reads (``read``),
None where it reads nothing.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment


class Formats:
    """Flink's formats for the columns of a table."""

    def __init__(self, env: TableEnvironment, columns: str) -> None:
        jvm = get_gateway().jvm
        env.execute_sql("DROP TABLE IF EXISTS t")
        env.execute_sql(f"CREATE TABLE t ({columns}) WITH ('connector' = 'datagen')")
        kind = env.from_path("t")._j_table.getResolvedSchema().toPhysicalRowDataType().getLogicalType()
        information = jvm.org.apache.flink.table.runtime.typeutils.InternalTypeInfo.of(kind)
        common, avro = jvm.org.apache.flink.formats.common, jvm.org.apache.flink.formats.avro
        shown = jvm.org.apache.flink.formats.json
        standard = common.TimestampFormat.SQL
        encoding = avro.AvroFormatOptions.AvroEncoding.JSON
        self.from_json = shown.JsonRowDataDeserializationSchema(kind, information, False, False, standard)
        mode = shown.JsonFormatOptions.MapNullKeyMode.FAIL
        self.to_json = shown.JsonRowDataSerializationSchema(kind, standard, mode, "null", False, False)
        self.from_avro = avro.AvroRowDataDeserializationSchema(kind, information, encoding, True)
        self.to_avro = avro.AvroRowDataSerializationSchema(kind, encoding, True)
        for each in (self.from_json, self.to_json, self.from_avro, self.to_avro):
            each.open(None)

    def written(self, row: Any) -> str:
        """The message of a row."""
        return bytes(self.to_avro.serialize(self.from_json.deserialize(json.dumps(row).encode()))).decode()

    def read(self, message: str) -> Any:
        """The row of a message; None if it is none."""
        try:
            return json.loads(bytes(self.to_json.serialize(self.from_avro.deserialize(message.encode()))))
        except Exception as error:
            print(str(error).splitlines()[:3], flush=True)
            return None


def main() -> None:
    """Records."""
    data = Path(sys.argv[1])
    cases = json.loads(data.read_text())
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    jars = sorted(Path(os.environ["FLINK_JARS"]).glob("flink-sql-avro*.jar"))
    env.get_config().set("pipeline.jars", ";".join(path.as_uri() for path in jars))
    for case in cases:
        formats = Formats(env, case["columns"])
        if "rows" in case:
            case["messages"] = [formats.written(row) for row in case["rows"]]
        case["read"] = [formats.read(message) for message in case["messages"]]
    lines = ",\n".join(" " + json.dumps(case, ensure_ascii=False) for case in cases)
    data.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
