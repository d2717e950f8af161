"""List state: two streams joined by key, each record with all of the other side, and a list read and replaced."""

from collections.abc import Iterator

from firesteel.common import TypeInformation, Types
from firesteel.datastream import (
    FlatMapFunction,
    KeyedCoProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ListStateDescriptor

ORDER = "none"
Record = tuple[str, str, int]


def record_type() -> TypeInformation:
    return Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])


class FullJoin(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", record_type()))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", record_type()))

    def process_element1(self, value: Record, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        self.left.add(value)
        for partner in self.right.get():
            yield f"{tuple(value)} => {tuple(partner)}"

    def process_element2(self, value: Record, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        self.right.add(value)
        for partner in self.left:
            yield f"{tuple(partner)} => {tuple(value)}"


class Collected(FlatMapFunction):
    """Gives out all that a key has brought so far, and starts anew after the third."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def flat_map(self, value: tuple[str, int]) -> Iterator[str]:
        seen = [*self.seen.get(), value[1]]
        self.seen.update(seen)
        yield f"{value[0]} {list(self.seen.get())}"
        if len(seen) == 3:
            self.seen.clear()
            yield f"{value[0]} cleared {list(self.seen.get())}"
            self.seen.add_all([0, 1])
            yield f"{value[0]} anew {list(self.seen)}"
            self.seen.update([])
            yield f"{value[0]} emptied {list(self.seen)}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    left = env.from_collection(
        [("a", "stream-1", 1000), ("b", "stream-1", 2000), ("a", "stream-1", 2500)], record_type()
    )
    right = env.from_collection(
        [("a", "stream-2", 3000), ("b", "stream-2", 4000), ("c", "stream-2", 5000)], record_type()
    )
    keyed = left.key_by(lambda record: record[0], Types.STRING())
    keyed.connect(right.key_by(lambda record: record[0], Types.STRING())).process(FullJoin(), Types.STRING()).print()
    pairs = [(key, amount) for key in "abc" for amount in (50, 60, 70, 80)]
    stream = env.from_collection(pairs, Types.TUPLE([Types.STRING(), Types.LONG()])).key_by(
        lambda pair: pair[0], Types.STRING()
    )
    stream.flat_map(Collected(), Types.STRING()).print("list")
    env.execute("list state")


if __name__ == "__main__":
    main()
