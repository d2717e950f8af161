"""Two side outputs, typed and untyped, beside the main stream."""

from collections.abc import Iterator
from typing import Any

from firesteel.common import Types
from firesteel.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

ORDER = "label"
ODD = OutputTag("odd", Types.INT())
BIG = OutputTag("big")


class Split(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if value % 2:
            yield ODD, value
        if value > 5:
            yield BIG, {"value": value}
        yield value * 10


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection(list(range(9)), Types.INT()).process(Split(), Types.INT())
    numbers.print("main")
    numbers.get_side_output(ODD).map(lambda n: -n, Types.INT()).print("odd")
    numbers.get_side_output(BIG).print("big")
    env.execute("side outputs")


if __name__ == "__main__":
    main()
