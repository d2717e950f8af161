"""Two streams without keys: a co-map that drops None, a co-flat-map, a co-process, unions, a stream with itself."""

from collections.abc import Iterator

from firesteel.common import Types
from firesteel.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    StreamExecutionEnvironment,
)

ORDER = "none"


class Label(CoMapFunction):
    def map1(self, value: int) -> str | None:
        return f"number {value}" if value % 2 else None

    def map2(self, value: str) -> str:
        return f"text {value}"


class Twice(CoFlatMapFunction):
    def flat_map1(self, value: int) -> list[str]:
        return [f"{value}"] * value

    def flat_map2(self, value: str) -> Iterator[str]:
        yield value
        yield value.upper()


class Time(CoProcessFunction):
    def process_element1(self, value: int, ctx: CoProcessFunction.Context) -> Iterator[str]:
        yield f"1 {value} {ctx.timestamp()}"

    def process_element2(self, value: int, ctx: CoProcessFunction.Context) -> Iterator[str]:
        yield f"2 {value} {ctx.timer_service().current_watermark()}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection([1, 2, 3], Types.INT())
    texts = env.from_collection(["a", "b"], Types.STRING())
    numbers.connect(texts).map(Label(), Types.STRING()).print("map")
    numbers.connect(texts).flat_map(Twice(), Types.STRING()).print("flat")
    numbers.connect(numbers).process(Time(), Types.STRING()).print("self")
    more = env.from_collection([10, 20], Types.INT())
    numbers.union(more).connect(texts.union(texts)).map(Label()).map(lambda text: text, Types.STRING()).print("union")
    env.execute("connected unkeyed")


if __name__ == "__main__":
    main()
