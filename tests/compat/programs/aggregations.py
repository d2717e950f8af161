"""sum, min, max, min_by and max_by on tuples: what becomes of the other fields, and who wins a tie."""

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment

ORDER = "label"
RECORDS = [
    ("a", 3, "first"),
    ("b", 7, "only"),
    ("a", 1, "second"),
    ("a", 1, "tie"),
    ("a", 5, "last"),
    ("a", 5, "tie"),
]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    type_info = Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()])
    keyed = env.from_collection(RECORDS, type_info).key_by(lambda record: record[0], Types.STRING())
    keyed.sum(1).print("sum")
    keyed.min(1).print("min")
    keyed.max(1).print("max")
    keyed.min_by(1).print("min_by")
    keyed.max_by(1).print("max_by")
    env.execute("aggregations")


if __name__ == "__main__":
    main()
