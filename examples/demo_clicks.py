"""Clicks per user in event time, with a live table: ``make demo``.

    python examples/demo_clicks.py
    python examples/demo_clicks.py --rate 20000 --seconds 60 --users 1000

A generator makes clicks that arrive up to two seconds out of order. Each user's clicks are counted per five
seconds of event time, in keyed state; an event-time timer gives the count out once the watermark says that
all clicks of those five seconds are there. The results stream back into this process, which draws them as a
table while the job runs. Beside it there is a page with the job's graph and live numbers, if the packages of
``firesteel[cluster]`` are there; its address is printed.
"""

import argparse
import contextlib
import datetime
import logging
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.common import Configuration, Duration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.state import ValueStateDescriptor

SPAN = 5_000
"""Milliseconds of event time that one result covers."""
DISORDER = 2_000
"""Milliseconds by which a click may arrive late."""
END_OF_TIME = (1 << 63) - 1
"""The watermark at the end of the input."""
TOP = 10
"""Users in the table."""


class Click(NamedTuple):
    user: str
    time: int


class Count(NamedTuple):
    """One result: how often a user clicked in the five seconds before ``end``."""

    user: str
    end: int
    clicks: int
    watermark: int
    batch: int
    """The processing time of its micro-batch, which all results of a batch share."""


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.time)


class ClicksPerSpan(KeyedProcessFunction):
    """Counts a user's clicks per span of event time and gives each count out when its span is complete."""

    def open(self, runtime_context: RuntimeContext) -> None:
        # Several spans are open at once, because clicks of the next one arrive before this one is complete.
        open_spans = ValueStateDescriptor("clicks per open span", Types.MAP(Types.LONG(), Types.LONG()))
        self.spans = runtime_context.get_state(open_spans)

    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> None:
        end = ctx.timestamp() - ctx.timestamp() % SPAN + SPAN
        spans = dict(self.spans.value() or {})
        if end not in spans:
            # The last millisecond that belongs to the span.
            ctx.timer_service().register_event_time_timer(end - 1)
        spans[end] = spans.get(end, 0) + 1
        self.spans.update(spans)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Count]:
        spans = dict(self.spans.value() or {})
        clicks = spans.pop(timestamp + 1)
        self.spans.update(spans or None)
        times = ctx.timer_service()
        now, watermark = times.current_processing_time(), times.current_watermark()
        yield Count(ctx.get_current_key(), timestamp + 1, clicks, watermark, now)


class ClickGenerator:
    """Click number ``index``. The same index always gives the same click, so that a batch can be repeated."""

    def __init__(self, start: int, rate: int, users: int) -> None:
        self.start = start
        self.rate = rate
        self.users = users

    def __call__(self, index: int) -> Click:
        chance = zlib.crc32(b"%d" % index) / 2**32
        delay = index * 48271 % 65537 * DISORDER // 65537
        # The third power makes a few users click a lot and most of them rarely.
        user = int(self.users * chance**3)
        return Click(f"user-{user:03}", self.start + index * 1000 // self.rate - delay)


class Table:
    """The top users of the newest span: redrawn in place on a terminal, a line per span elsewhere."""

    def __init__(self, live: bool) -> None:
        self.results = 0
        self.clicks = 0
        self.watermark: int | None = None
        self._live = live
        self._spans: dict[int, dict[str, int]] = {}
        self._told = 0
        self._height = 0
        # Results come in bursts, one per micro-batch. A thread draws shortly after each of them.
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._finished = False
        self._seen: int | None = None
        if live:
            threading.Thread(target=self._draw_changes, daemon=True).start()

    def add(self, count: Count) -> None:
        # A span is complete for all users in the same micro-batch, so the next batch means that all were seen.
        if not self._live and count.batch != self._seen:
            self._tell()
        self._seen = count.batch
        with self._lock:
            self.results += 1
            self.clicks += count.clicks
            if count.watermark != END_OF_TIME:
                self.watermark = max(count.watermark, self.watermark or count.watermark)
            self._spans.setdefault(count.end, {})[count.user] = count.clicks
        self._changed.set()

    def finish(self) -> None:
        if not self._live:
            self._tell()
            return
        with self._lock:
            self._draw()
            self._finished = True

    def _top(self, end: int) -> list[tuple[str, int]]:
        return sorted(self._spans[end].items(), key=lambda item: (-item[1], item[0]))[:TOP]

    def _tell(self) -> None:
        for end in sorted(span for span in self._spans if span > self._told):
            top = ", ".join(f"{user} {clicks}" for user, clicks in self._top(end)[:3])
            every = self._spans[end]
            total = sum(every.values())
            print(f"{span_text(end)}  {total:>8,} clicks of {len(every):>5,} users, most: {top}", flush=True)
            self._told = end

    def _draw_changes(self) -> None:
        while self._changed.wait():
            self._changed.clear()
            time.sleep(0.2)
            with self._lock:
                if not self._finished:
                    self._draw()

    def _draw(self) -> None:
        if not self._spans:
            return
        end = max(self._spans)
        top = self._top(end)
        most = top[0][1]
        lines = [
            f"clicks per user, {span_text(end)}",
            "",
            *(f"  {user:<10} {clicks:>7,}  {'█' * max(1, clicks * 30 // most)}" for user, clicks in top),
            *[""] * (TOP - len(top)),
            "",
            f"{self.clicks:,} clicks in {self.results:,} results so far",
        ]
        up = f"\r\x1b[{self._height}A" if self._height else ""
        sys.stdout.write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
        sys.stdout.flush()
        self._height = len(lines)


class LastLine(logging.Handler):
    """Remembers the last line that the engine logged: at the end of a job it sums up its run."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def moment(millis: int) -> str:
    return datetime.datetime.fromtimestamp(millis / 1000).strftime("%H:%M:%S.%f")[:-3]


def span_text(end: int) -> str:
    return f"{moment(end - SPAN)[:-4]} to {moment(end)[:-4]}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Clicks per user in event time, with a live table.")
    parser.add_argument("--rate", type=int, default=5_000, help="clicks a second (default: 5,000)")
    parser.add_argument("--seconds", type=int, default=30, help="how long clicks are made (default: 30)")
    parser.add_argument("--users", type=int, default=200, help="how many users click (default: 200)")
    parser.add_argument("--parallelism", type=int, default=2, help="subtasks of every operator (default: 2)")
    options = parser.parse_args()

    engine = LastLine(logging.INFO)
    logger = logging.getLogger("firesteel")
    logger.setLevel(logging.INFO)
    logger.addHandler(engine)

    settings = Configuration()
    settings.set_string("firesteel.batch.interval", "500 ms")
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(options.parallelism)

    total = options.rate * options.seconds
    generator = ClickGenerator(int(time.time() * 1000), options.rate, options.users)
    clicks = env.from_source(
        DataGeneratorSource(generator, count=total, records_per_second=options.rate),
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER)).with_timestamp_assigner(
            ClickTime()
        ),
        "clicks",
    )
    counts = clicks.key_by(lambda click: click.user).process(ClicksPerSpan()).name("clicks per 5 s")

    stack = contextlib.ExitStack()
    with contextlib.suppress(ImportError):
        from firesteel.cluster.job_page import JobPage

        page = stack.enter_context(JobPage())
        print(f"Watch the job at {page.address} while it runs; the page asks for this token: {page.token}")
    print(f"{total:,} clicks, {options.rate:,} a second; the engine starts …", flush=True)
    began = time.monotonic()
    table = Table(live=sys.stdout.isatty())
    results: Any = counts.execute_and_collect("clicks")
    with stack, results:
        for count in results:
            table.add(count)
    table.finish()
    seconds = time.monotonic() - began

    watermark = "none" if table.watermark is None else moment(table.watermark)
    print()
    print(f"clicks counted   {table.clicks:>12,}" + ("" if table.clicks == total else f"   of {total:,}!"))
    print(f"results          {table.results:>12,}")
    print(f"time             {seconds:>12.1f} s, start-up included")
    print(f"clicks a second  {table.clicks / seconds:>12,.0f}")
    print(f"last watermark   {watermark:>12}, then the end of the input")
    print(f"the engine says: {engine.text}")


if __name__ == "__main__":
    main()
