"""What the programs have in common: an environment with tables, and what became of a program."""

import datetime
import os
from decimal import Decimal

from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment

PROGRAMS = []


def program(function):
    """A program takes an environment and gives a table."""
    PROGRAMS.append(function)
    return function


def environment():
    """With tables t of k, s, v, and e of values of many types."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("firesteel.master", "memory")
    env.get_config().set("parallelism.default", "1")
    # A bundle takes all rows of these programs, however slow the machine is.
    env.get_config().set("python.fn-execution.bundle.time", "60000")
    t = env.from_elements(
        [(1, "a", 1.5), (2, "b", 2.5), (1, "c", None), (None, "d", 0.5), (3, "a b", -1.0)],
        DataTypes.ROW(
            [
                DataTypes.FIELD("k", DataTypes.INT()),
                DataTypes.FIELD("s", DataTypes.STRING()),
                DataTypes.FIELD("v", DataTypes.DOUBLE()),
            ]
        ),
    )
    env.create_temporary_view("t", t)
    return env


def types_table(env):
    """One row with a value of each type."""
    fields = [
        ("b", DataTypes.BOOLEAN(), True),
        ("i8", DataTypes.TINYINT(), 7),
        ("i16", DataTypes.SMALLINT(), -300),
        ("i32", DataTypes.INT(), 70000),
        ("i64", DataTypes.BIGINT(), 1 << 40),
        ("f32", DataTypes.FLOAT(), 1.25),
        ("f64", DataTypes.DOUBLE(), 0.1),
        ("dec", DataTypes.DECIMAL(10, 3), Decimal("12.345")),
        ("s", DataTypes.STRING(), "häß"),
        ("raw", DataTypes.BYTES(), bytearray(b"\x00\xff")),
        ("d", DataTypes.DATE(), datetime.date(2024, 2, 29)),
        ("tm", DataTypes.TIME(), datetime.time(12, 30, 15)),
        ("ts", DataTypes.TIMESTAMP(3), datetime.datetime(2024, 2, 29, 1, 2, 3, 123000)),
        ("arr", DataTypes.ARRAY(DataTypes.BIGINT()), [1, 2, 3]),
        ("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.BIGINT()), {"x": 1}),
    ]
    row_type = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind, _ in fields])
    return env.from_elements([tuple(value for _, _, value in fields)], row_type)


def _shown(value):
    return repr(bytes(value) if isinstance(value, bytearray) else value)


def outcome(function):
    """Names, types and changes of a program's table, or that it fails."""
    try:
        table = function(environment())
        schema = table.get_schema()
        names = schema.get_field_names() if hasattr(schema, "get_field_names") else schema.field_names()
        kinds = schema.get_field_data_types() if hasattr(schema, "get_field_data_types") else schema.field_types()
        with table.execute().collect() as rows:
            changes = [[str(row.get_row_kind()), *map(_shown, row)] for row in rows]
    except Exception as error:
        if os.environ.get("SHOW_ERRORS"):
            print(function.__name__, str(error)[:6000])
        return {"error": type(error).__name__}
    return {"names": list(names), "types": [repr(kind) for kind in kinds], "changes": changes}
