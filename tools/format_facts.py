"""Records what PyFlink's JSON, CSV and Avro schemas make of given messages, for ``tests/compat/test_formats.py``.

Run with the Python of an environment that has PyFlink, and with Flink's Avro jar (``flink-sql-avro``, from Maven)::

    <environment>/bin/python tools/format_facts.py --jar flink-sql-avro-2.3.0.jar

The cases are in ``tests/compat/format_cases.py``. PyFlink's schemas are Java's, so they are called through its gateway.
The result is ``tests/compat/format_facts.json``.
"""

import argparse
import importlib.util
import json
import os
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests" / "compat"


class PyFlink:
    """PyFlink's schemas, as the cases use them."""

    def __init__(self) -> None:
        from pyflink.common import Types
        from pyflink.datastream.formats import avro, csv
        from pyflink.datastream.formats import json as json_format
        from pyflink.java_gateway import get_gateway

        modules = (avro, csv, json_format)
        self.names: dict[str, Any] = {name: getattr(module, name) for module in modules for name in module.__all__}
        self.names["Types"] = Types
        self._jvm = get_gateway().jvm

    def reader(self, schema: str) -> Any:
        """A deserialisation schema by the text that makes it, open."""
        made = eval(schema, self.names)._j_deserialization_schema
        made.open(None)
        return made

    def writer(self, schema: str) -> Any:
        """A serialisation schema by the text that makes it, open."""
        made = eval(schema, self.names)._j_serialization_schema
        made.open(None)
        return made

    def read(self, reader: Any, message: bytes) -> Any:
        """A row as Java has it."""
        return reader.deserialize(message)

    def write(self, writer: Any, row: Any) -> bytes:
        """The bytes of a row that was read."""
        return bytes(writer.serialize(row))

    def text(self, value: Any) -> str:
        """What a value is, in a form that both sides can give."""
        if value is None or isinstance(value, bool | int):
            return str(value)
        if isinstance(value, float):
            return str(self._jvm.java.lang.Double.toString(value))
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, Decimal):
            return f"decimal {value:f}"
        if isinstance(value, bytes | bytearray):
            return f"bytes {bytes(value).hex()}"
        return self._text_of_object(value)

    def _text_of_object(self, value: Any) -> str:
        name = value.getClass().getName()
        if name == "org.apache.flink.types.Row":
            return f"({', '.join(self.text(value.getField(index)) for index in range(value.getArity()))})"
        if name.startswith("[") or name.endswith("List"):
            return f"[{', '.join(map(self.text, value))}]"
        if name.endswith("Map"):
            items = sorted((self.text(key), self.text(value[key])) for key in value)
            return f"{{{', '.join(f'{key}: {item}' for key, item in items)}}}"
        if name == "java.sql.Timestamp":
            # What is below a millisecond does not reach Python.
            value.setNanos(value.getNanos() // 1_000_000 * 1_000_000)
        if name == "java.math.BigInteger":
            return str(value.toString())
        return f"{name.rpartition('.')[2].lower()} {value.toString()}"

    def failure(self, error: Exception) -> str | None:
        """The innermost cause, or None where it is none of Flink's."""
        cause = getattr(error, "java_exception", None)
        if cause is None:
            return None
        while cause.getCause() is not None:
            cause = cause.getCause()
        return str(cause.toString()).splitlines()[0][:160]


def cases() -> Any:
    """The module with the cases, which needs neither PyFlink nor Firesteel."""
    spec = importlib.util.spec_from_file_location("format_cases", TESTS / "format_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what PyFlink's schemas do.")
    parser.add_argument("--jar", type=Path, required=True, help="flink-sql-avro of the same version")
    parser.add_argument("--output", type=Path, default=TESTS / "format_facts.json")
    options = parser.parse_args()
    os.environ["_JAVA_OPTIONS"] = "-Duser.timezone=UTC"
    import pyflink

    jar = Path(pyflink.__file__).parent / "lib" / options.jar.name
    if not jar.exists():
        shutil.copy(options.jar, jar)
    facts = cases().evaluate(PyFlink())
    text = json.dumps(facts, indent=1, ensure_ascii=True)
    options.output.write_text(text + "\n", encoding="utf-8")
    print(f"{options.output.name}: {len(facts)} cases")


if __name__ == "__main__":
    main()
