"""Joins two streams by key, each record with every record of the other side: list state.

    python examples/state_full_join.py

This is what ``SELECT * FROM A INNER JOIN B WHERE A.id = B.id`` means for streams. A record may find its partners only
later, so both sides are kept for ever. On streams without end give the lists a time to live, or they grow without
end, too (see state_time_to_live.py).
"""

from collections.abc import Iterator

from firesteel.common import Types
from firesteel.datastream import KeyedCoProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor

Record = tuple[str, str, int]
RECORD = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG()])

LEFT = [("a", "stream-1", 1000), ("b", "stream-1", 2000), ("a", "stream-1", 2500)]
RIGHT = [("a", "stream-2", 3000), ("b", "stream-2", 4000), ("c", "stream-2", 5000)]


class FullJoin(KeyedCoProcessFunction):
    """Both methods see the state of the same key, whichever stream its record came from."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", RECORD))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right", RECORD))

    def process_element1(self, value: Record, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        # First remember the record, for partners that are still to come; then meet those that are here.
        self.left.add(value)
        for partner in self.right.get():
            yield f"{value} => {partner}"

    def process_element2(self, value: Record, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        self.right.add(value)
        for partner in self.left.get():
            yield f"{partner} => {value}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    left = env.from_collection(LEFT, RECORD).key_by(lambda record: record[0])
    right = env.from_collection(RIGHT, RECORD).key_by(lambda record: record[0])
    left.connect(right).process(FullJoin(), Types.STRING()).print()

    env.execute("full join")


if __name__ == "__main__":
    main()
