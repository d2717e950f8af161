"""Aggregations that name the field of a row, or leave the position to its default."""

from firesteel.common import Row, Types
from firesteel.datastream import StreamExecutionEnvironment

ORDER = "label"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    named = Types.ROW_NAMED(["name", "score", "rate"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
    rows = [Row("a", 2, 0.5), Row("a", 9, 0.25), Row("a", 4, 2.0), Row("b", 1, 1.0)]
    keyed = env.from_collection(rows, named).key_by(lambda row: row[0], Types.STRING())
    keyed.sum("score").print("sum")
    keyed.min("rate").print("min")
    keyed.max_by("score").print("max_by")
    numbers = env.from_collection([(4, "x"), (2, "y"), (4, "z")], Types.TUPLE([Types.INT(), Types.STRING()]))
    numbers.key_by(lambda pair: 0, Types.INT()).sum().print("sum of field 0")
    numbers.key_by(lambda pair: 0, Types.INT()).max().print("max of field 0")
    env.execute("aggregations of rows")


if __name__ == "__main__":
    main()
