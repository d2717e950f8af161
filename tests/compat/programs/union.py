"""union of three streams, and of a stream with itself."""

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment

ORDER = "none"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    one = env.from_collection([1, 2], Types.INT())
    ten = env.from_collection([10, 20], Types.INT())
    hundred = env.from_collection([100], Types.INT())
    one.union(ten, hundred).map(lambda n: n + 1, Types.INT()).print("three")
    one.union(one).print("itself")
    env.execute("union")


if __name__ == "__main__":
    main()
