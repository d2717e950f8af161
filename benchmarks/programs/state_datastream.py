"""Keyed state of every kind, for PyFlink and for Firesteel: one program, two imports."""

from collections.abc import Iterator
from typing import Any

import both

parser = both.arguments(__doc__)
parser.add_argument("--kind", choices=["list", "map", "aggregating", "broadcast", "co_process"], required=True)
parser.add_argument("--keys", type=int, default=10_000)
options = parser.parse_args()

engine = both.Engine(options)
datastream, state = engine.datastream, engine.state
Types = engine.common.Types
RECORD = Types.TUPLE([Types.STRING(), Types.LONG()])
KEYS = options.keys
Records = Iterator[tuple[str, int]]


def turn(number: int) -> int:
    """How often the record's key came before, shifted from key to key: at no time are all keys due for the same."""
    return number // KEYS + number


class ListAppend(datastream.KeyedProcessFunction):  # type: ignore[name-defined,misc]
    """Every record is appended to its key's list; every hundredth of a key reads the list."""

    def open(self, runtime_context: Any) -> None:
        self.numbers = runtime_context.get_list_state(state.ListStateDescriptor("numbers", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Records:
        user, number = value
        self.numbers.add(number)
        if turn(number) % 100 == 99:
            yield user, sum(self.numbers.get())


class MapUpdate(datastream.KeyedProcessFunction):  # type: ignore[name-defined,misc]
    """Every record reads and writes one of ten entries of its key's map."""

    def open(self, runtime_context: Any) -> None:
        descriptor = state.MapStateDescriptor("items", Types.STRING(), Types.LONG())
        self.items = runtime_context.get_map_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Records:
        user, number = value
        item = f"item-{turn(number) % 10}"
        count = (self.items.get(item) or 0) + 1
        self.items.put(item, count)
        yield user, count


class Mean(datastream.AggregateFunction):  # type: ignore[name-defined,misc]
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> int:
        return accumulator[0] // accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class MeanPerKey(datastream.KeyedProcessFunction):  # type: ignore[name-defined,misc]
    """Every record is added to its key's mean, and the mean is read."""

    def open(self, runtime_context: Any) -> None:
        accumulator = Types.TUPLE([Types.LONG(), Types.LONG()])
        descriptor = state.AggregatingStateDescriptor("mean", Mean(), accumulator)
        self.mean = runtime_context.get_aggregating_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Records:
        self.mean.add(value[1])
        yield value[0], self.mean.get()


RULES = state.MapStateDescriptor("rules", Types.LONG(), Types.LONG())


class CountByRule(datastream.KeyedBroadcastProcessFunction):  # type: ignore[name-defined,misc]
    """Every record looks up one of 100 rules, which says how much it adds to its key's count."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(state.ValueStateDescriptor("count", Types.LONG()))

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value[0], value[1])

    def process_element(self, value: Any, ctx: Any) -> Records:
        user, number = value
        rule = ctx.get_broadcast_state(RULES).get(number % 100)
        count = (self.count.value() or 0) + (1 if rule is None else rule)
        self.count.update(count)
        yield user, count


class LatestOfBoth(datastream.KeyedCoProcessFunction):  # type: ignore[name-defined,misc]
    """Every record replaces the latest one of its side and meets the latest one of the other."""

    def open(self, runtime_context: Any) -> None:
        self.left = runtime_context.get_state(state.ValueStateDescriptor("left", Types.LONG()))
        self.right = runtime_context.get_state(state.ValueStateDescriptor("right", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Records:
        self.left.update(value[1])
        other = self.right.value()
        if other is not None:
            yield value[0], value[1] + other

    def process_element2(self, value: Any, ctx: Any) -> Records:
        self.right.update(value[1])
        other = self.left.value()
        if other is not None:
            yield value[0], value[1] + other


FUNCTIONS = {"list": ListAppend, "map": MapUpdate, "aggregating": MeanPerKey}


def users(env: Any, records: int) -> Any:
    """Pairs of a user's name and a number, keyed by user; each of the users comes once in as many records."""
    numbers = engine.numbers(env, records)
    pairs = numbers.map(lambda n: (f"user-{n * 2654435761 % KEYS}", n), RECORD)
    return pairs.key_by(lambda pair: pair[0], Types.STRING())


def job(records: int) -> None:
    env = engine.environment()
    if options.kind == "broadcast":
        numbered = [(number, number * 7 % 10) for number in range(100)]
        rules = env.from_collection(numbered, Types.TUPLE([Types.LONG(), Types.LONG()])).broadcast(RULES)
        results = users(env, records).connect(rules).process(CountByRule(), RECORD)
    elif options.kind == "co_process":
        left, right = users(env, records // 2), users(env, records - records // 2)
        results = left.connect(right).process(LatestOfBoth(), RECORD)
    else:
        results = users(env, records).process(FUNCTIONS[options.kind](), RECORD)
    engine.discard(results)
    env.execute(f"{options.kind}, {records} records")


engine.measure(job)
