"""Mistakes that are refused while the program is built or run."""

from collections.abc import Callable, Iterator
from typing import Any

from firesteel.common import Types
from firesteel.datastream import ProcessFunction, StreamExecutionEnvironment


class TimerWithoutKey(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[int]:
        ctx.timer_service().register_event_time_timer(1)
        yield value


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    return env


def run(stream: Any) -> None:
    with stream.execute_and_collect() as results:
        list(results)


def union_of_types() -> None:
    env = environment()
    env.from_collection([1], Types.INT()).union(env.from_collection(["a"], Types.STRING()))


def mistakes() -> dict[str, Callable[[], Any]]:
    def numbers() -> Any:
        return environment().from_collection([1], Types.INT())

    return {
        "a plan without operators": lambda: environment().get_execution_plan(),
        "a job without operators": lambda: environment().execute(),
        "a union of different types": union_of_types,
        "a parallelism of zero": lambda: environment().set_parallelism(0),
        "a timer without a key": lambda: run(numbers().process(TimerWithoutKey(), Types.INT())),
        "a user's exception": lambda: run(numbers().map(lambda n: n // 0, Types.INT())),
        "a string declared as INT": lambda: run(numbers().map(lambda n: "text", Types.INT())),
        "project without types": lambda: numbers().map(lambda n: (n, n)).project(0),
        "a filter that is no function": lambda: numbers().filter(5),
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
