"""Reducing state: the largest bid with a function object, a running sum with a lambda, and what clearing does."""

from collections.abc import Iterator

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, ReduceFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ReducingStateDescriptor

Bid = tuple[str, int]
BID = Types.TUPLE([Types.STRING(), Types.INT()])


class Largest(ReduceFunction):
    def reduce(self, value1: Bid, value2: Bid) -> Bid:
        return value1 if value1[1] >= value2[1] else value2


class Auction(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.largest = runtime_context.get_reducing_state(ReducingStateDescriptor("largest", Largest(), BID))
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.INT())
        )

    def process_element(self, value: tuple[str, str, int], ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        before = self.total.get()
        self.largest.add((value[1], value[2]))
        self.total.add(value[2])
        yield f"{ctx.get_current_key()} {before} {tuple(self.largest.get())} {self.total.get()}"
        if self.total.get() > 100:
            self.total.clear()
            yield f"{ctx.get_current_key()} cleared {self.total.get()}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    bids = [
        ("vase", "ann", 40),
        ("lamp", "bob", 70),
        ("vase", "bob", 55),
        ("vase", "ann", 50),
        ("lamp", "ann", 20),
        ("vase", "cat", 5),
        ("lamp", "bob", 90),
    ]
    stream = env.from_collection(bids, Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()]))
    stream.key_by(lambda bid: bid[0], Types.STRING()).process(Auction(), Types.STRING()).print()
    env.execute("reducing state")


if __name__ == "__main__":
    main()
