"""Raises an alarm when a sensor's temperature rises reading by reading: value states and a timer that is taken back.

    python examples/state_temperature_alarm.py

Two rules at once, as monitors have them:

1. three readings in a row, each higher than the one before: the alarm follows at once;
2. a rise that nothing interrupts for ten seconds, however many readings came: a timer is set when a rise begins and
   deleted when a reading falls. If it fires, the temperature has not fallen for ten seconds.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.common import Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor


class Reading(NamedTuple):
    sensor: str
    time: int
    temperature: float


READINGS = [
    Reading("sensor-1", 1_000, 35.8),
    Reading("sensor-2", 1_500, 15.4),
    Reading("sensor-1", 2_000, 36.1),  # rises: 1
    Reading("sensor-1", 3_000, 36.4),  # rises: 2
    Reading("sensor-2", 3_500, 15.9),  # a rise begins at 3.5 s
    Reading("sensor-1", 4_000, 37.0),  # rises: 3, rule 1
    Reading("sensor-1", 5_000, 36.2),  # falls: the timer of 12 s is deleted
    Reading("sensor-1", 6_000, 36.3),  # a new rise begins at 6 s
    Reading("sensor-2", 9_000, 16.8),
    Reading("sensor-1", 13_800, 36.0),  # falls again; time has passed 13.5 s, and sensor-2 has not fallen: rule 2
    Reading("sensor-2", 14_000, 15.0),  # falls, too late to delete the timer
]


class ReadingTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.time)


class RisingTemperature(KeyedProcessFunction):
    def __init__(self, readings: int, interval: int) -> None:
        self.readings = readings
        self.interval = interval

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last temperature", Types.DOUBLE()))
        self.rises = runtime_context.get_state(ValueStateDescriptor("rises", Types.INT()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        before = self.last.value()
        self.last.update(value.temperature)
        if before is None:
            return
        timers = ctx.timer_service()
        due = self.timer.value()
        if value.temperature > before:
            if due is None:
                due = value.time + self.interval
                timers.register_event_time_timer(due)
                self.timer.update(due)
            rises = (self.rises.value() or 0) + 1
            self.rises.update(rises)
            if rises == self.readings:
                yield f"{value.sensor}: {rises} rises in a row, now {value.temperature}"
        else:
            if due is not None:
                timers.delete_event_time_timer(due)
            self.timer.clear()
            self.rises.clear()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        yield f"{ctx.get_current_key()}: no fall for {self.interval / 1000:g} s, at {timestamp / 1000:g} s"
        self.timer.clear()


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # A watermark after every reading instead of one per micro-batch, so that timers fire in between.
    env.get_config().set_auto_watermark_interval(1)

    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ReadingTime())
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(by_time)
    alarm = RisingTemperature(readings=3, interval=10_000)
    readings.key_by(lambda reading: reading.sensor).process(alarm, Types.STRING()).print()

    env.execute("temperature alarm")


if __name__ == "__main__":
    main()
