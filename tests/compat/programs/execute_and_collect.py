"""What execute_and_collect gives back: Python values of the declared types, all or a limited number."""

import datetime
from typing import Any

from firesteel.common import Row, Types
from firesteel.datastream import DataStream, StreamExecutionEnvironment


def show(label: str, stream: DataStream) -> None:
    with stream.execute_and_collect(label) as results:
        values: list[Any] = list(results)
    print(label, [(type(value).__name__, value) for value in values], flush=True)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    show("int", env.from_collection([1, 2], Types.INT()))
    show("tuple", env.from_collection([("a", 1.5)], Types.TUPLE([Types.STRING(), Types.DOUBLE()])))
    row_type = Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.BOOLEAN()])
    show("row", env.from_collection([Row("x", True), Row(None, False)], row_type))
    nested_type = Types.TUPLE([Types.STRING(), Types.LIST(Types.INT())])
    show("nested", env.from_collection([("k", [1, 2])], nested_type))
    show("date", env.from_collection([datetime.date(2024, 2, 29)], Types.SQL_DATE()))
    show("untyped", env.from_collection(["a", "b"]).map(lambda text: {text: (1, None)}))
    limited = env.from_collection(list(range(100)), Types.INT()).execute_and_collect("limited", 3)
    print("limited", list(limited), flush=True)


if __name__ == "__main__":
    main()
