"""Mistakes with connected streams that are refused while the program is built or run."""

from collections.abc import Callable, Iterator
from typing import Any

from firesteel.common import Types
from firesteel.datastream import (
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor


class Either(CoMapFunction):
    def map1(self, value: int) -> int:
        return value

    def map2(self, value: int) -> int:
        return value // 0


class WithTimer(CoProcessFunction):
    def process_element1(self, value: int, ctx: CoProcessFunction.Context) -> Iterator[int]:
        ctx.timer_service().register_event_time_timer(1)
        yield value

    def process_element2(self, value: int, ctx: CoProcessFunction.Context) -> Iterator[int]:
        yield value


class WithState(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("state", Types.INT()))

    def process_element1(self, value: int, ctx: KeyedCoProcessFunction.Context) -> Iterator[int]:
        yield value

    def process_element2(self, value: int, ctx: KeyedCoProcessFunction.Context) -> Iterator[int]:
        yield value


def run(stream: Any) -> None:
    with stream.execute_and_collect() as results:
        list(results)


def mistakes() -> dict[str, Callable[[], Any]]:
    def both() -> Any:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        return env.from_collection([1], Types.INT()).connect(env.from_collection([2], Types.INT()))

    def two_types() -> Any:
        streams = both()
        left = streams.stream1.key_by(lambda n: n, Types.INT())
        right = streams.stream2.key_by(lambda n: str(n), Types.STRING())
        return left.connect(right).process(WithState(), Types.INT())

    def same(value: int) -> int:
        return value

    return {
        "a lambda as co-map": lambda: both().map(lambda n: n),
        "a class as co-map": lambda: both().map(Either),
        "a co-map as co-flat-map": lambda: both().flat_map(Either()),
        "a co-map as co-process": lambda: both().process(Either()),
        "a timer without keys": lambda: run(both().process(WithTimer(), Types.INT())),
        "a timer without on_timer": lambda: run(both().key_by(same, same).process(WithTimer(), Types.INT())),
        "state without keys": lambda: run(both().process(WithState(), Types.INT())),
        "keys of two types": two_types,
        "a user's exception": lambda: run(both().map(Either(), Types.INT())),
    }


def main() -> None:
    for label, mistake in mistakes().items():
        try:
            mistake()
        except Exception:
            print(label, "is refused", flush=True)
        else:
            print(label, "is accepted", flush=True)


if __name__ == "__main__":
    main()
