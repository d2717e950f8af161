"""Keys of every sort: numbers, strings, tuples, None, rows, and classes of the program itself."""

import dataclasses
from typing import Any

from firesteel.common import Row, Types
from firesteel.datastream import StreamExecutionEnvironment

ORDER = "none"


@dataclasses.dataclass(frozen=True)
class Seat:
    row: str
    number: int


KEYS: dict[str, list[Any]] = {
    "int": [1, 2, 1],
    "float": [0.5, 1.5, 0.5],
    "string": ["a", "b", "a", ""],
    "boolean": [True, False, True],
    "bytes": [b"a", b"b", b"a"],
    "tuple": [("a", 1), ("a", 2), ("a", 1)],
    "none": [None, "a", None],
    "row": [Row("a", 1), Row("a", 2), Row("a", 1)],
    "class": [Seat("A", 1), Seat("A", 2), Seat("A", 1)],
}


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    cases = [(sort, index) for sort, keys in KEYS.items() for index in range(len(keys))]
    stream = env.from_collection(cases, Types.TUPLE([Types.STRING(), Types.INT()]))
    counted = stream.map(lambda case: (*case, 1))
    counted.key_by(lambda case: (case[0], KEYS[case[0]][case[1]])).reduce(
        lambda a, b: (a[0], max(a[1], b[1]), a[2] + b[2])
    ).print()
    bare = env.from_collection(list(range(3)), Types.INT()).map(lambda i: (i, 1))
    bare.key_by(lambda pair: KEYS["class"][pair[0]]).reduce(lambda a, b: (b[0], a[1] + b[1])).print("seat")
    bare.key_by(lambda pair: KEYS["none"][pair[0]]).reduce(lambda a, b: (b[0], a[1] + b[1])).print("none")
    env.execute("key types")


if __name__ == "__main__":
    main()
