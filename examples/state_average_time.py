"""The average time of every five clicks of a user: aggregating state in a flat_map.

    python examples/state_average_time.py

An aggregating state keeps an accumulator, here the sum and the number of times. ``add()`` folds a click into it, and
``get()`` reads it as the result, here the average. Accumulator and result may be of different types.
"""

from collections.abc import Iterator
from typing import NamedTuple

from firesteel.common import Types
from firesteel.datastream import AggregateFunction, FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import AggregatingStateDescriptor, ValueStateDescriptor

CLICKS_PER_RESULT = 5


class Click(NamedTuple):
    user: str
    url: str
    time: int


CLICKS = [
    Click(user, "./home", second * 1_000)
    for second, user in enumerate(["Mary", "Bob", "Mary", "Mary", "Bob", "Mary", "Mary", "Mary", "Bob", "Bob", "Bob"])
]


class AverageTime(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Click, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value.time, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> int:
        return accumulator[0] // accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class AverageOfFive(FlatMapFunction):
    """Any rich function on a keyed stream may have keyed state, not process functions alone."""

    def open(self, runtime_context: RuntimeContext) -> None:
        accumulator = Types.TUPLE([Types.LONG(), Types.LONG()])
        average = AggregatingStateDescriptor("average time", AverageTime(), accumulator)
        self.average = runtime_context.get_aggregating_state(average)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def flat_map(self, value: Click) -> Iterator[str]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.average.add(value)
        if count == CLICKS_PER_RESULT:
            yield f"{value.user} average time: {self.average.get()}"
            # Both are cleared, so the next five clicks start from nothing.
            self.count.clear()
            self.average.clear()


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    clicks = env.from_collection(CLICKS)
    clicks.key_by(lambda click: click.user).flat_map(AverageOfFive(), Types.STRING()).print()

    env.execute("average time")


if __name__ == "__main__":
    main()
