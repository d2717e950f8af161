"""How many records each subtask gets from rebalance, broadcast and forward, and that none is lost."""

from collections import Counter

from firesteel.common import Types
from firesteel.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment


class WithSubtask(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.index = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> tuple[int, int]:
        return self.index, value


def show(label: str, stream: DataStream) -> None:
    with stream.map(WithSubtask()).execute_and_collect(label) as results:
        pairs = list(results)
    per_subtask = sorted(Counter(index for index, _ in pairs).values())
    print(label, "values:", sorted(value for _, value in pairs), flush=True)
    if label in ("rebalance", "broadcast"):
        print(label, "records a subtask:", per_subtask, flush=True)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_collection(list(range(8)), Types.INT())
    show("rebalance", numbers.rebalance())
    show("rescale", numbers.rescale())
    show("shuffle", numbers.shuffle())
    show("broadcast", numbers.broadcast())
    show("forward", numbers.map(lambda n: n * n, Types.INT()).forward())


if __name__ == "__main__":
    main()
