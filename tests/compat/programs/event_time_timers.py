"""Event-time timers that are all due at the end of a bounded stream, the latest possible one too."""

from collections.abc import Iterator

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TimeDomain

ORDER = "label"
FOREVER = 2**63 - 1


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int], record_timestamp: int) -> int:
        return value[1]


class Reminder(KeyedProcessFunction):
    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        timers = ctx.timer_service()
        timers.register_event_time_timer(value[1] + 100)
        timers.register_event_time_timer(FOREVER)
        if value[1] == 3000:
            timers.delete_event_time_timer(2100)
        yield f"{ctx.get_current_key()}> element at {ctx.timestamp()}"

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        domain = ctx.time_domain() == TimeDomain.EVENT_TIME
        yield f"{ctx.get_current_key()}> timer at {timestamp} {ctx.timestamp() == timestamp} {domain}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    records = [("a", 1000), ("b", 1500), ("a", 2000), ("a", 1000), ("a", 3000), ("b", 500)]
    stream = env.from_collection(records, Types.TUPLE([Types.STRING(), Types.LONG()]))
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(SecondField()))
    timed.key_by(lambda record: record[0], Types.STRING()).process(Reminder(), Types.STRING()).print()
    env.execute("event-time timers")


if __name__ == "__main__":
    main()
