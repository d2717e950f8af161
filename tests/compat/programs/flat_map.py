"""What flat_map and process may return: lists, generators, tuples, ranges and nothing."""

from collections.abc import Iterable, Iterator

from firesteel.common import Types
from firesteel.datastream import FlatMapFunction, ProcessFunction, StreamExecutionEnvironment

ORDER = "label"


class Shapes(FlatMapFunction):
    def flat_map(self, value: int) -> Iterable[int]:
        if value == 1:
            return [1]
        if value == 2:
            return (2, 2)
        return range(value)


class Times(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[int] | None:
        return iter([value] * value) if value else None


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([0, 1, 2, 3], Types.INT())
    numbers.flat_map(Shapes(), Types.INT()).print("flat_map")
    numbers.flat_map(lambda n: (chr(97 + i) for i in range(n)), Types.STRING()).print("generator")
    numbers.process(Times(), Types.INT()).print("process")
    env.execute("flat_map")


if __name__ == "__main__":
    main()
