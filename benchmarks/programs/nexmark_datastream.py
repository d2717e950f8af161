"""Queries of Nexmark as DataStream programs, for PyFlink and for Firesteel: one program, two imports.

Persons, auctions and bids come from ``nexmark_events.py``; a rate counts all events, also those of kinds that a query
does not read. Only q8 differs between the engines: PyFlink has no window join.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import both
import nexmark_events as events

QUERIES = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8", "q11", "q12")

parser = both.arguments(__doc__)
parser.add_argument("--query", choices=QUERIES, required=True)
options = parser.parse_args()

engine = both.Engine(options)
common, datastream, state, window = engine.common, engine.datastream, engine.state, engine.window
Time, Types = common.Time, common.Types
SECOND = 1_000
SPAN = 10 * SECOND
"""The length of q8's windows in milliseconds."""

# Types are made anew wherever they are used: PyFlink's remember an object of the JVM, which cannot travel to a worker.


def long() -> Any:
    return Types.LONG()


def text() -> Any:
    return Types.STRING()


def pair() -> Any:
    return Types.TUPLE([long(), long()])


def named() -> Any:
    return Types.TUPLE([text(), long()])


def person() -> Any:
    return Types.TUPLE([long(), text(), text(), text(), text(), text(), long(), text()])


def auction() -> Any:
    return Types.TUPLE([long(), text(), text(), long(), long(), long(), long(), long(), long(), text()])


def bid() -> Any:
    return Types.TUPLE([long(), long(), long(), text(), text(), long(), text()])


class TimeOf(common.watermark_strategy.TimestampAssigner):  # type: ignore[name-defined,misc]
    def __init__(self, field: int) -> None:
        self.field = field

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[self.field])


class Source:
    """The events of a job; those of one kind are made where they are asked for."""

    def __init__(self, env: Any, records: int) -> None:
        self.numbers = engine.numbers_in_order(env, records)

    def timed(self, stream: Any, field: int) -> Any:
        strategy = common.WatermarkStrategy.for_bounded_out_of_orderness(common.Duration.of_seconds(1))
        return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(TimeOf(field)))

    def persons(self) -> Any:
        return self.timed(self.numbers.flat_map(events.persons, person()), 6)

    def auctions(self) -> Any:
        return self.timed(self.numbers.flat_map(events.auctions, auction()), 5)

    def bids(self) -> Any:
        return self.timed(self.numbers.flat_map(events.bids, bid()), 5)

    def bids_without_time(self) -> Any:
        return self.numbers.flat_map(events.bids, bid())


class Count(datastream.AggregateFunction):  # type: ignore[name-defined,misc]
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class WithKey(datastream.ProcessWindowFunction):  # type: ignore[name-defined,misc]
    """Puts the key before the window's only result."""

    def process(self, key: int, context: Any, elements: Any) -> Iterator[tuple[int, int]]:
        for element in elements:
            yield key, element


class SellersNearby(datastream.KeyedCoProcessFunction):  # type: ignore[name-defined,misc]
    """q3: persons and their auctions, whichever comes first."""

    def open(self, runtime_context: Any) -> None:
        self.person = runtime_context.get_state(state.ValueStateDescriptor("person", text()))
        self.waiting = runtime_context.get_list_state(state.ListStateDescriptor("waiting", long()))

    def process_element1(self, value: Any, ctx: Any) -> Iterator[tuple[str, int]]:
        self.person.update(value[1])
        for auction in self.waiting.get() or ():
            yield value[1], auction
        self.waiting.clear()

    def process_element2(self, value: Any, ctx: Any) -> Iterator[tuple[str, int]]:
        person = self.person.value()
        if person is None:
            self.waiting.add(value[0])
        else:
            yield person, value[0]


class WinningBids(datastream.KeyedCoProcessFunction):  # type: ignore[name-defined,misc]
    """q4: (category, highest bid) of an auction when it ends. Auctions are kept, as an unbounded join keeps them."""

    def open(self, runtime_context: Any) -> None:
        self.auction = runtime_context.get_state(state.ValueStateDescriptor("auction", pair()))
        self.best = runtime_context.get_state(state.ValueStateDescriptor("best", long()))
        self.early = runtime_context.get_list_state(state.ListStateDescriptor("early", pair()))

    def process_element1(self, value: Any, ctx: Any) -> None:
        end = value[6]
        self.auction.update((value[8], end))
        prices = [price for price, moment in self.early.get() or () if moment <= end]
        if prices:
            self.best.update(max(prices))
            self.early.clear()
        ctx.timer_service().register_event_time_timer(end)

    def process_element2(self, value: Any, ctx: Any) -> None:
        price, moment = value[2], value[5]
        auction = self.auction.value()
        if auction is None:
            self.early.add((price, moment))
        elif moment <= auction[1] and price > (self.best.value() or 0):
            self.best.update(price)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[int, int]]:
        best = self.best.value()
        if best is not None:
            yield self.auction.value()[0], best


class MeanPrice(datastream.KeyedProcessFunction):  # type: ignore[name-defined,misc]
    """q4: the mean of all winning bids of a category so far."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(state.ValueStateDescriptor("total", pair()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[int, int]]:
        total, count = self.total.value() or (0, 0)
        total, count = total + value[1], count + 1
        self.total.update((total, count))
        yield value[0], total // count


class NewSellers(datastream.KeyedCoProcessFunction):  # type: ignore[name-defined,misc]
    """q8 without a window join: persons and auctions of one window, kept by its end until it is over."""

    def open(self, runtime_context: Any) -> None:
        self.persons = runtime_context.get_map_state(state.MapStateDescriptor("persons", long(), text()))
        self.auctions = runtime_context.get_list_state(state.ListStateDescriptor("auctions", pair()))

    def process_element1(self, value: Any, ctx: Any) -> None:
        end = value[6] // SPAN * SPAN + SPAN
        self.persons.put(end, value[1])
        ctx.timer_service().register_event_time_timer(end - 1)

    def process_element2(self, value: Any, ctx: Any) -> None:
        end = value[5] // SPAN * SPAN + SPAN
        self.auctions.add((end, value[0]))
        ctx.timer_service().register_event_time_timer(end - 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[tuple[str, int]]:
        end = timestamp + 1
        person = self.persons.get(end)
        found = list(self.auctions.get() or ())
        if person is not None:
            self.persons.remove(end)
            for each, auction in found:
                if each == end:
                    yield person, auction
        self.auctions.update([pair for pair in found if pair[0] != end])


def q0(source: Source) -> Any:
    return source.bids_without_time().map(lambda bid: bid, bid())


def q1(source: Source) -> Any:
    """Prices in another currency."""
    return source.bids_without_time().map(lambda bid: (*bid[:2], bid[2] * 908 // 1000, *bid[3:]), bid())


def q2(source: Source) -> Any:
    """The bids of some auctions."""
    return source.bids_without_time().filter(lambda bid: bid[0] % 123 == 0).map(lambda bid: (bid[0], bid[2]), pair())


def q3(source: Source) -> Any:
    persons = source.persons().filter(lambda person: person[5] in ("OR", "ID", "CA"))
    auctions = source.auctions().filter(lambda auction: auction[8] == 10)
    keyed = persons.key_by(lambda person: person[0], long()).connect(
        auctions.key_by(lambda auction: auction[7], long())
    )
    return keyed.process(SellersNearby(), named())


def q4(source: Source) -> Any:
    auctions = source.auctions().key_by(lambda auction: auction[0], long())
    bids = source.bids().key_by(lambda bid: bid[0], long())
    winning = auctions.connect(bids).process(WinningBids(), pair())
    return winning.key_by(lambda pair: pair[0], long()).process(MeanPrice(), pair())


def q5(source: Source) -> Any:
    """The auction with most bids in the last ten seconds, every two seconds."""
    sliding = window.SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(2))
    counts = (
        source.bids()
        .key_by(lambda bid: bid[0], long())
        .window(sliding)
        .aggregate(Count(), window_function=WithKey(), accumulator_type=long(), output_type=pair())
    )
    # Results carry the last millisecond of their window, so two seconds hold the windows with one end.
    together = counts.window_all(window.TumblingEventTimeWindows.of(Time.seconds(2)))
    return together.reduce(lambda one, other: one if one[1] >= other[1] else other)


def q7(source: Source) -> Any:
    """The highest bid of every ten seconds: of each auction, then of all."""
    higher = lambda one, other: one if one[2] >= other[2] else other  # noqa: E731
    tumbling = window.TumblingEventTimeWindows.of(Time.seconds(10))
    highest = source.bids().key_by(lambda bid: bid[0], long()).window(tumbling).reduce(higher)
    return highest.window_all(tumbling).reduce(higher)


def q8(source: Source) -> Any:
    """Persons who opened auctions within the same ten seconds in which they came."""
    persons, auctions = source.persons(), source.auctions()
    if options.engine == "firesteel":
        keyed = (
            persons.join(auctions).where(lambda person: person[0], long()).equal_to(lambda auction: auction[7], long())
        )
        pairs = keyed.window(window.TumblingEventTimeWindows.of(Time.milliseconds(SPAN)))
        return pairs.apply(lambda person, auction: (person[1], auction[0]), named())
    connected = persons.key_by(lambda person: person[0], long()).connect(auctions.key_by(lambda a: a[7], long()))
    return connected.process(NewSellers(), named())


def q11(source: Source) -> Any:
    """Bids of a person in a session."""
    sessions = window.EventTimeSessionWindows.with_gap(Time.seconds(10))
    windowed = source.bids().key_by(lambda bid: bid[1], long()).window(sessions)
    return windowed.aggregate(Count(), window_function=WithKey(), accumulator_type=long(), output_type=pair())


def q12(source: Source) -> Any:
    """Bids of a person in ten seconds of processing time."""
    tumbling = window.TumblingProcessingTimeWindows.of(Time.seconds(10))
    windowed = source.bids_without_time().key_by(lambda bid: bid[1], long()).window(tumbling)
    return windowed.aggregate(Count(), window_function=WithKey(), accumulator_type=long(), output_type=pair())


def job(records: int) -> None:
    env = engine.environment()
    env.add_python_file(str(Path(events.__file__)))
    engine.discard(globals()[options.query](Source(env, records)))
    env.execute(f"{options.query}, {records} events")


engine.measure(job)
