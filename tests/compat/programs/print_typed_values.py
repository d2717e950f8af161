"""How print() writes values of each declared type."""

import datetime
import decimal

from firesteel.common import Row, Types
from firesteel.datastream import StreamExecutionEnvironment

ORDER = "label"
PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
VALUES = {
    "string": (Types.STRING(), ["", "plain", "ünïcode", "1,2 (x)"]),
    "int": (Types.INT(), [0, -7]),
    "long": (Types.LONG(), [2**40]),
    "double": (Types.DOUBLE(), [1.0, 0.1, -0.0, 1e20, 1.5e-7, 100.0, 12345678.9, float("inf"), float("nan")]),
    "float": (Types.FLOAT(), [0.5, 1.0, 0.1, 16777216.0]),
    "boolean": (Types.BOOLEAN(), [True, False]),
    "decimal": (Types.BIG_DEC(), [decimal.Decimal("1.50"), decimal.Decimal("-3")]),
    "date": (Types.SQL_DATE(), [datetime.date(2024, 2, 29)]),
    "time": (Types.SQL_TIME(), [datetime.time(1, 2, 3)]),
    "timestamp": (Types.SQL_TIMESTAMP(), [datetime.datetime(2024, 2, 29, 1, 2, 3, 450000)]),
    "tuple": (
        Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE(), Types.BOOLEAN(), PAIR]),
        [("a", 1, 1.5, True, ("b", 2))],
    ),
    "row": (Types.ROW([Types.STRING(), Types.INT(), Types.DOUBLE(), PAIR]), [Row("a", 1, 1.5, ("b", 2))]),
    "row with none": (Types.ROW([Types.STRING(), Types.INT(), Types.BOOLEAN()]), [Row(None, None, True)]),
    "named row": (Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()]), [Row(x=1, y="z"), Row(2, "w")]),
    "list": (Types.LIST(Types.INT()), [[1, 2, 3], []]),
    "map": (Types.MAP(Types.STRING(), Types.BOOLEAN()), [{"k": True}, {}]),
    "basic array in row": (Types.ROW([Types.BASIC_ARRAY(Types.INT())]), [Row([1, 2])]),
    "list in tuple": (Types.TUPLE([Types.LIST(Types.STRING()), Types.INT()]), [(["a", "b"], 1)]),
}


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for label, (type_info, values) in VALUES.items():
        indexes = env.from_collection(list(range(len(values))), Types.INT())
        indexes.map(lambda index, values=values: values[index], type_info).print(label)
        if "list" not in label and label != "map":
            env.from_collection(values, type_info).print(f"{label} from the source")
    env.execute("typed values")


if __name__ == "__main__":
    main()
