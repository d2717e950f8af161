"""A second key_by replaces the first; a map on a keyed stream ends its being keyed."""

from firesteel.common import Types
from firesteel.datastream import KeyedStream, StreamExecutionEnvironment

ORDER = "label"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    type_info = Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()])
    records = env.from_collection([("a", "x", 1), ("b", "x", 2), ("a", "y", 4), ("b", "y", 8)], type_info)
    keyed = records.key_by(lambda r: r[0], Types.STRING())
    keyed.key_by(lambda r: r[1], Types.STRING()).sum(2).print("second")
    mapped = keyed.map(lambda r: r[2])
    print("types>", isinstance(keyed, KeyedStream), isinstance(mapped, KeyedStream), flush=True)
    mapped.print("mapped")
    keyed.filter(lambda r: r[2] > 1).print("filtered")
    env.execute("key_by twice")


if __name__ == "__main__":
    main()
