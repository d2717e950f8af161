"""Three failed log-ins in a row within ten seconds, with nothing in between.

python examples/cep_logins.py
"""

from typing import Any, NamedTuple

from firesteel.cep import CEP, AfterMatchSkipStrategy, Pattern
from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment


class LogIn(NamedTuple):
    user: str
    second: int
    succeeded: bool


LOG_INS = [
    LogIn("ann", 1, False),
    LogIn("ann", 2, False),
    LogIn("bob", 3, False),
    LogIn("ann", 4, True),  # she remembered
    LogIn("bob", 5, False),
    LogIn("bob", 9, False),  # the third within ten seconds
    LogIn("ann", 20, False),
    LogIn("ann", 25, False),
    LogIn("ann", 31, False),  # eleven seconds after the first
]


class LogInTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.second) * 1000


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    log_ins = env.from_collection(LOG_INS).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(LogInTime())
    )
    pattern = (
        Pattern.begin("failed", AfterMatchSkipStrategy.skip_past_last_event())
        .where(lambda log_in: not log_in.succeeded)
        .times(3)
        .consecutive()
        .within(Duration.of_seconds(10))
    )
    alerts = CEP.pattern(log_ins.key_by(lambda log_in: log_in.user), pattern).select(
        lambda match: f"{match['failed'][0].user} failed at seconds {[one.second for one in match['failed']]}"
    )
    alerts.print()
    env.execute("log-ins")


if __name__ == "__main__":
    main()
