"""Counts clicks by page into files, and fails on the way: every count is there exactly once all the same.

    python examples/sink_exactly_once.py

The job fails in its second micro-batch, restarts from the last checkpoint, and reads that batch again. What it had
written was hidden and is dropped; readers of the folder never see it. The counts come from state, which goes back to
the checkpoint, too.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from firesteel.common import Configuration, Encoder, Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, OutputFileConfig
from firesteel.datastream.state import ValueStateDescriptor

CLICKS = [("./home", n) if n % 3 else ("./cart", n) for n in range(12)]


class Count(KeyedProcessFunction):
    """How often each page was clicked; fails once, at one of the clicks."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        page, number = value
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if number == 7 and not Path(self.marker).exists():
            Path(self.marker).touch()
            raise ConnectionError("the power is gone")
        yield {"page": page, "count": count}


def main() -> None:
    settings = {
        "firesteel.batch.max-records": "5",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(1)

    with TemporaryDirectory() as folder:
        target = Path(folder) / "counts"
        sink = (
            FileSink.for_row_format(str(target), Encoder.json_encoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_output_file_config(OutputFileConfig("counts", ".jsonl"))
            .build()
        )
        counts = env.from_collection(CLICKS).key_by(lambda click: click[0]).process(Count(f"{folder}/failed"))
        counts.sink_to(sink).uid("counts-to-files")
        env.execute("exactly once")

        found = [json.loads(line) for file in target.glob("counts-*") for line in file.read_text().splitlines()]
        for page in ("./home", "./cart"):
            print(page, sorted(entry["count"] for entry in found if entry["page"] == page))
        print("failed once:", (Path(folder) / "failed").exists())


if __name__ == "__main__":
    main()
