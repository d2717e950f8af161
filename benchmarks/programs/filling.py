"""A job that fills many keys and then goes on with small micro-batches: what programs about large state share."""

from collections.abc import Iterator

from firesteel.common import Types
from firesteel.connectors.sequence import IndexEnumerator, NumberReader
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors import Source
from firesteel.datastream.state import ValueStateDescriptor

ENDLESS = 1 << 60


class FillThenSmall(IndexEnumerator):
    """Numbers: the first ``keys`` of them as fast as they come, then a few in each micro-batch."""

    def __init__(self, keys: int, batch: int) -> None:
        super().__init__(ENDLESS)
        self.keys, self.batch = keys, batch

    def latest(self, position: int, max_records: int) -> int:
        if position < self.keys:
            return min(self.keys, position + max_records)
        return position + self.batch


class Numbers(Source[None, int]):
    def __init__(self, keys: int, batch: int) -> None:
        self.keys, self.batch = keys, batch

    def create_enumerator(self) -> FillThenSmall:
        return FillThenSmall(self.keys, self.batch)

    def create_reader(self) -> NumberReader:
        return NumberReader(0)


class Replace(KeyedProcessFunction):
    """Reads a value of 100 characters and writes another one."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.STRING()))

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        before = self.value.value()
        self.value.update(f"{value[1]:0100d}")
        yield 0 if before is None else len(before)
