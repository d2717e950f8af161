"""How print() writes values without a declared type: as Python's str does."""

import dataclasses
import datetime
import decimal
from typing import Any

from firesteel.common import Row
from firesteel.datastream import StreamExecutionEnvironment


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Plain:
    def __str__(self) -> str:
        return "plain str"


VALUES: list[Any] = [
    1,
    -2.5,
    True,
    "text",
    ("a", 1, 1.5, True, None),
    ["a", 1],
    {"k": [1, (2,)]},
    {3},
    Row("a", 1, None),
    Row(name="a", n=1),
    Point(1, 2.0),
    Plain(),
    decimal.Decimal("1.50"),
    datetime.date(2024, 2, 29),
    datetime.timedelta(seconds=90),
]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(list(range(len(VALUES)))).map(lambda i: VALUES[i]).print()
    env.execute("untyped values")


if __name__ == "__main__":
    main()
