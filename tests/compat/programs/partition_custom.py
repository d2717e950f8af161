"""partition_custom decides the subtask itself: a lambda and a Partitioner, seen in print's prefix."""

from firesteel.common import Types
from firesteel.datastream import Partitioner, StreamExecutionEnvironment

ORDER = "none"
SUBTASKS = "exact"


class Backwards(Partitioner):
    def partition(self, key: int, num_partitions: int) -> int:
        return num_partitions - 1 - key % num_partitions


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3)
    numbers = env.from_collection(list(range(7)), Types.INT())
    numbers.partition_custom(lambda key, n: key % n, lambda number: number).print("lambda")
    numbers.partition_custom(Backwards(), lambda number: number // 2).print("class")
    env.execute("partition custom")


if __name__ == "__main__":
    main()
