"""project on typed tuples: chosen, reordered and repeated fields."""

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment

ORDER = "label"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    type_info = Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE(), Types.BOOLEAN()])
    stream = env.from_collection([("a", 1, 1.5, True), ("b", 2, -0.0, False)], type_info)
    stream.project(2, 0).print("reordered")
    stream.project(1).print("single")
    stream.project(3, 3, 1).print("repeated")
    env.execute("project")


if __name__ == "__main__":
    main()
