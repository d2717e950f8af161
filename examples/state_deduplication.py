"""Lets every order through once, however often it arrives: the smallest state there is.

    python examples/state_deduplication.py
    python examples/state_deduplication.py --parallelism 4

Messages are often delivered more than once. Keyed by its id, a record needs one bit of state: was it seen before? The
memory of a stream without end must end, though, so the bit has a time to live of an hour.
"""

import argparse
from typing import NamedTuple

from firesteel.common import Time, Types
from firesteel.datastream import FilterFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import StateTtlConfig, ValueStateDescriptor


class Order(NamedTuple):
    id: str
    amount: int


ORDERS = [
    Order("o-1", 20),
    Order("o-2", 35),
    Order("o-1", 20),
    Order("o-3", 10),
    Order("o-2", 35),
    Order("o-1", 20),
    Order("o-4", 35),
]


class FirstTime(FilterFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        seen = ValueStateDescriptor("seen", Types.BOOLEAN())
        seen.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_state(seen)

    def filter(self, value: Order) -> bool:
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description="Lets every order through once.")
    parser.add_argument("--parallelism", type=int, default=1, help="subtasks of every operator (default: 1)")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(options.parallelism)

    orders = env.from_collection(ORDERS)
    orders.key_by(lambda order: order.id).filter(FirstTime()).print()

    env.execute("deduplication")


if __name__ == "__main__":
    main()
