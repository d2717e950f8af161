"""A job is stopped, its state is looked into and corrected, and a newer version of the program goes on from there.

Run it: python examples/savepoint_upgrade.py

1. Version 1 counts clicks per user. It is stopped with a savepoint.
2. The savepoint's tables are read: who has clicked how often?
3. A robot that should never have been counted is taken out of the state.
4. Version 2, with twice the parallelism, goes on from the edited savepoint, and also tells every tenth click of a user.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import Any

from firesteel.common import Configuration, JobClient, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.state_processor import Savepoint

USERS = ("Alice", "Bob", "robot")


class CountClicks(KeyedProcessFunction):
    def __init__(self, every: int | None = None) -> None:
        self.every = every

    def open(self, runtime_context: RuntimeContext) -> None:
        self.clicks = runtime_context.get_state(ValueStateDescriptor("clicks", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        clicks = (self.clicks.value() or 0) + 1
        self.clicks.update(clicks)
        if self.every is not None and clicks % self.every == 0:
            yield f"{value}: click {clicks}"


def start(clicks: int, parallelism: int, every: int | None = None, **settings: str) -> JobClient:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(parallelism)
    source = DataGeneratorSource(lambda n: USERS[n % 3], clicks, 30)
    users = env.from_source(source, WatermarkStrategy.no_watermarks(), "clicks").uid("clicks")
    counted = users.key_by(lambda user: user, key_type=Types.STRING()).process(CountClicks(every)).uid("count")
    counted.print()
    return env.execute_async("clicks")


def main() -> None:
    folder = tempfile.mkdtemp(prefix="savepoints-")
    job: Any = start(clicks=10**9, parallelism=1)
    while job.inbox.progress.records < 30:
        time.sleep(0.05)
    path = job.stop_with_savepoint(False, folder).result()

    savepoint = Savepoint.load(path)
    counts = dict(savepoint.items("count", "clicks"))
    print("version 1 has counted", sum(counts.values()) == savepoint.position("clicks"), sorted(counts))

    edited = savepoint.edit().delete_keys("count", ["robot"]).save(f"{folder}/edited")
    print("left:", sorted(key for key, _ in edited.items("count", "clicks")))

    last = savepoint.position("clicks") + 60
    again = start(last, 2, every=10, **{"execution.state-recovery.path": edited.path})
    again.get_job_execution_result().result()


if __name__ == "__main__":
    main()
