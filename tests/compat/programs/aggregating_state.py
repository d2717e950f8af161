"""Aggregating state: the average time of every five clicks of a user."""

from collections.abc import Iterator

from firesteel.common import Types
from firesteel.datastream import AggregateFunction, FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import AggregatingStateDescriptor, ValueStateDescriptor

USERS = ["Mary", "Bob", "Mary", "Mary", "Bob", "Mary", "Mary", "Mary", "Bob", "Bob", "Bob"] * 2


class Average(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class AverageOfFive(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        accumulator = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.average = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("average", Average(), accumulator)
        )
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def flat_map(self, value: tuple[str, int]) -> Iterator[str]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.average.add(value[1])
        if count == 5:
            yield f"{value[0]} {self.average.get()}"
            self.count.clear()
            if value[0] == "Mary":
                self.average.clear()


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    clicks = [(user, second * 1000) for second, user in enumerate(USERS)]
    stream = env.from_collection(clicks, Types.TUPLE([Types.STRING(), Types.LONG()]))
    stream.key_by(lambda click: click[0], Types.STRING()).flat_map(AverageOfFive(), Types.STRING()).print()
    env.execute("aggregating state")


if __name__ == "__main__":
    main()
