"""Orders that are paid within 15 minutes, and those that are not: partial matches whose time is over.

python examples/cep_orders.py
"""

from typing import Any, NamedTuple

from firesteel.cep import CEP, Pattern
from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import OutputTag, StreamExecutionEnvironment


class OrderEvent(NamedTuple):
    order: int
    minute: int
    what: str


EVENTS = [
    OrderEvent(1, 0, "created"),
    OrderEvent(2, 3, "created"),
    OrderEvent(1, 7, "changed"),
    OrderEvent(1, 9, "paid"),
    OrderEvent(3, 12, "created"),
    OrderEvent(2, 18, "paid"),  # 15 minutes are over: exactly 15 is too late
    OrderEvent(4, 40, "created"),
]
UNPAID = OutputTag("unpaid")


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.minute) * 60_000


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    events = env.from_collection(EVENTS).assign_timestamps_and_watermarks(strategy)

    pattern = (
        Pattern.begin("created")
        .where(lambda event: event.what == "created")
        .followed_by("paid")
        .where(lambda event: event.what == "paid")
        .within(Duration.of_minutes(15))
    )
    paid = CEP.pattern(events.key_by(lambda event: event.order), pattern).select(
        UNPAID,
        lambda match, end: f"order {match['created'][0].order} is cancelled in minute {end // 60_000}",
        lambda match: f"order {match['paid'][0].order} is paid in minute {match['paid'][0].minute}",
    )
    paid.print()
    paid.get_side_output(UNPAID).print()
    env.execute("orders")


if __name__ == "__main__":
    main()
