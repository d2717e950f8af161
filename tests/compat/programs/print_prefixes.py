"""The prefixes of print(): with and without an identifier, with one subtask and with two."""

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment

ORDER = "none"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection(["x", "y", "z"], Types.STRING())
    numbers.print()
    numbers.print("named")
    numbers.print().set_parallelism(1)
    numbers.print("single").set_parallelism(1)
    env.execute("print prefixes")


if __name__ == "__main__":
    main()
