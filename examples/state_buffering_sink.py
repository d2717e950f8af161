"""A sink that writes in groups of ten and loses nothing: operator state.

    python examples/state_buffering_sink.py

Writing to an outside system record by record is slow, so the sink collects records in a plain list. If the process
died, that list would be lost, though its records were already taken from the source. So the sink is a
``CheckpointedFunction`` too. It copies the list into operator state at every checkpoint, which is the end of every
micro-batch, and takes it back when it starts again.

Operator state belongs to a subtask, not to a key: the stream need not be keyed.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from firesteel.common import Configuration, Types
from firesteel.datastream import CheckpointedFunction, SinkFunction, StreamExecutionEnvironment
from firesteel.datastream.functions import FunctionInitializationContext, FunctionSnapshotContext
from firesteel.datastream.state import ListStateDescriptor

GROUP = 10


class Click(NamedTuple):
    user: str
    url: str
    time: int


USERS = ["Mary", "Alice", "Bob", "Cary"]
URLS = ["./home", "./cart", "./fav"]
CLICKS = [Click(USERS[n % 4], URLS[n % 3], n * 1000) for n in range(25)]


class BufferingSink(SinkFunction, CheckpointedFunction):
    """Writes to a file, which stands for the outside system."""

    def __init__(self, path: str, threshold: int) -> None:
        self.path = path
        self.threshold = threshold

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        # Called before the first record. At the first start the state is empty; after a restart it holds what the last
        # complete checkpoint saved.
        descriptor = ListStateDescriptor("buffered", Types.PICKLED_BYTE_ARRAY())
        self.saved = context.get_operator_state_store().get_list_state(descriptor)
        self.buffer = list(self.saved.get())

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        self.buffer.append(value)
        if len(self.buffer) == self.threshold:
            with open(self.path, "a") as out:
                out.writelines(f"{click.user} {click.url} {click.time}\n" for click in self.buffer)
                out.write("==========\n")
            self.buffer.clear()

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        # Called when a micro-batch ends. What is in the state now is saved together with the source's position.
        self.saved.update(self.buffer)


def main() -> None:
    # Seven records a batch, so that the buffer has to last from one batch to the next.
    settings = Configuration()
    settings.set_string("firesteel.batch.max-records", "7")
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(1)

    with TemporaryDirectory() as folder:
        target = Path(folder) / "clicks.txt"
        env.from_collection(CLICKS).add_sink(BufferingSink(str(target), GROUP))
        env.execute("buffering sink")
        # Two groups of ten. The last five clicks wait in the state for a tenth that never comes.
        print(target.read_text(), end="")


if __name__ == "__main__":
    main()
