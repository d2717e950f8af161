"""A keyed process function that keeps two value states a key and clears one of them."""

from collections.abc import Iterator

from firesteel.common import Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

Purchase = tuple[str, int]


class Spending(KeyedProcessFunction):
    """Counts purchases, and sums them up until the sum passes ten."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Purchase, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        before = self.total.value()
        count = (self.count.value() or 0) + 1
        total = (before or 0) + value[1]
        self.count.update(count)
        self.total.update(total)
        yield f"{ctx.get_current_key()} {before} {count} {total}"
        if total > 10:
            self.total.clear()
            yield f"{ctx.get_current_key()} cleared {self.total.value()}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    purchases = [("ann", 4), ("bob", 20), ("ann", 5), ("ann", 6), ("bob", 1), ("ann", 1)]
    stream = env.from_collection(purchases, Types.TUPLE([Types.STRING(), Types.INT()]))
    stream.key_by(lambda purchase: purchase[0], Types.STRING()).process(Spending(), Types.STRING()).print()
    env.execute("value state")


if __name__ == "__main__":
    main()
