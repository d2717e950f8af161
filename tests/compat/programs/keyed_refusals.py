"""What a keyed stream refuses. Nothing is run."""

from collections.abc import Iterator
from typing import Any

from firesteel.common import Types
from firesteel.datastream import ProcessFunction, StreamExecutionEnvironment


class Plain(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        yield value


env = StreamExecutionEnvironment.get_execution_environment()
keyed = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])).key_by(lambda record: record[0])
calls = {
    "shuffle": lambda: keyed.shuffle(),
    "rebalance": lambda: keyed.rebalance(),
    "rescale": lambda: keyed.rescale(),
    "forward": lambda: keyed.forward(),
    "broadcast": lambda: keyed.broadcast(),
    "partition_custom": lambda: keyed.partition_custom(lambda key, width: 0, lambda record: record[1]),
    "process": lambda: keyed.process(Plain()),
    "name": lambda: keyed.name("name"),
    "get_name": lambda: keyed.get_name(),
    "uid": lambda: keyed.uid("uid"),
    "set_parallelism": lambda: keyed.set_parallelism(1),
    "set_max_parallelism": lambda: keyed.set_max_parallelism(1),
    "force_non_parallel": lambda: keyed.force_non_parallel(),
    "set_buffer_timeout": lambda: keyed.set_buffer_timeout(1),
    "start_new_chain": lambda: keyed.start_new_chain(),
    "disable_chaining": lambda: keyed.disable_chaining(),
    "slot_sharing_group": lambda: keyed.slot_sharing_group("group"),
    "set_description": lambda: keyed.set_description("text"),
    "key_by": lambda: keyed.key_by(lambda record: record[1]),
    "union": lambda: keyed.union(env.from_collection([("b", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))),
    "project": lambda: keyed.project(0),
    "map": lambda: keyed.map(lambda record: record),
}
for name, call in calls.items():
    try:
        call()
        print(name, "is possible")
    except Exception:
        print(name, "is refused")
