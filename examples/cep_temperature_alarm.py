"""Rising temperatures: a warning for two readings above the limit, an alarm if the second one is higher still.

    python examples/cep_temperature_alarm.py

Warnings are matches of a first pattern. Two warnings of a rack within twenty seconds, with a rising average, are an
alarm, matched by a second pattern on the stream of warnings. A warning that nothing follows is reported when its time
is over.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.cep import CEP, Pattern, PatternProcessFunction, TimedOutPartialMatchHandler
from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import OutputTag, StreamExecutionEnvironment


class Reading(NamedTuple):
    rack: str
    second: int
    temperature: float


class Warning(NamedTuple):
    rack: str
    average: float


READINGS = [
    Reading("rack-1", 0, 98.0),
    Reading("rack-2", 1, 101.0),
    Reading("rack-1", 5, 103.0),
    Reading("rack-2", 6, 99.0),
    Reading("rack-1", 8, 104.0),  # a warning: 103.5
    Reading("rack-2", 11, 102.0),
    Reading("rack-1", 12, 107.0),  # another one: 105.5, higher
    Reading("rack-2", 14, 103.0),  # a warning: 102.5
    Reading("rack-2", 20, 90.0),
    Reading("rack-1", 60, 90.0),
]
ALONE = OutputTag("alone")


class ReadingTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.second) * 1000


class Alarm(PatternProcessFunction, TimedOutPartialMatchHandler):
    def process_match(self, match: dict[str, list[Any]], ctx: PatternProcessFunction.Context) -> Iterator[str]:
        first, second = match["first"][0], match["second"][0]
        yield f"{first.rack}: {first.average} degrees, then {second.average}"

    def process_timed_out_match(
        self, match: dict[str, list[Any]], ctx: PatternProcessFunction.Context
    ) -> Iterator[tuple[OutputTag, str]]:
        yield ALONE, f"{match['first'][0].rack}: {match['first'][0].average} degrees, and no more"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ReadingTime())
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(strategy)

    hot = (
        Pattern.begin("first")
        .where(lambda reading: reading.temperature > 100)
        .next("second")
        .where(lambda reading: reading.temperature > 100)
        .within(Duration.of_seconds(10))
    )
    warnings = CEP.pattern(readings.key_by(lambda reading: reading.rack), hot).select(
        lambda match: Warning(
            match["first"][0].rack, (match["first"][0].temperature + match["second"][0].temperature) / 2
        )
    )

    rising = (
        Pattern.begin("first")
        .next("second")
        .where(lambda warning, context: warning.average > context.get_events_for_pattern("first")[0].average)
        .within(Duration.of_seconds(20))
    )
    alarms = CEP.pattern(warnings.key_by(lambda warning: warning.rack), rising).process(Alarm())
    alarms.map(lambda text: f"alarm {text}").print()
    alarms.get_side_output(ALONE).map(lambda text: f"warning {text}").print()
    env.execute("temperature alarm")


if __name__ == "__main__":
    main()
