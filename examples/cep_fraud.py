"""A small payment, then a large one with the same card within a minute: somebody tries a stolen card.

python examples/cep_fraud.py
"""

from typing import Any, NamedTuple

from firesteel.cep import CEP, AfterMatchSkipStrategy, Pattern
from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment


class Payment(NamedTuple):
    card: str
    second: int
    amount: float


PAYMENTS = [
    Payment("1111", 0, 0.5),
    Payment("2222", 5, 1.0),
    Payment("1111", 20, 30.0),
    Payment("1111", 40, 700.0),  # 1,400 times the small one, 40 seconds later
    Payment("2222", 50, 90.0),  # not large enough
    Payment("2222", 80, 600.0),  # too late
    Payment("3333", 90, 800.0),
]


class PaymentTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.second) * 1000


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(PaymentTime())
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)

    pattern = (
        Pattern.begin("small", AfterMatchSkipStrategy.skip_past_last_event())
        .where(lambda payment: payment.amount < 10)
        .followed_by("large")
        # A condition may look at what was matched before.
        .where(
            lambda payment, context: (
                payment.amount > 100 * max(small.amount for small in context.get_events_for_pattern("small"))
            )
        )
        .within(Duration.of_minutes(1))
    )
    alerts = CEP.pattern(payments.key_by(lambda payment: payment.card), pattern).select(
        lambda match: f"card {match['large'][0].card}: {match['small'][0].amount} and then {match['large'][0].amount}"
    )
    alerts.print()
    env.execute("fraud")


if __name__ == "__main__":
    main()
