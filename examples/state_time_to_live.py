"""Visits per user, forgotten after two seconds of silence: state with a time to live.

    python examples/state_time_to_live.py

State that nobody removes grows for ever. A time to live says how long a value is kept after it was last written (or,
with ``update_ttl_on_read_and_write``, last used). After that it reads as if it had never been, and it is removed in the
background even if nobody asks for it.

Alice visits for a second and leaves, Bob visits all the time, and then Alice comes back: her count starts again at one,
Bob's goes on. Values age by processing time, so this takes six seconds.
"""

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.state import StateTtlConfig, ValueStateDescriptor

VISITS_PER_SECOND = 5
VISITORS = ["Alice"] * 5 + ["Bob"] * 20 + ["Alice"] * 5


class CountVisits(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        config = (
            StateTtlConfig.new_builder(Time.seconds(2))
            # A visit writes the count, and each write gives it another two seconds. This is the default.
            .update_ttl_on_create_and_write()
            # What has expired is never shown, even if it was not removed yet. The default, too.
            .never_return_expired()
            .build()
        )
        visits = ValueStateDescriptor("visits", Types.LONG())
        visits.enable_time_to_live(config)
        self.visits = runtime_context.get_state(visits)

    def map(self, value: str) -> str:
        count = (self.visits.value() or 0) + 1
        self.visits.update(count)
        return f"{value}: visit {count}"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    visitor = DataGeneratorSource(lambda index: VISITORS[index], len(VISITORS), VISITS_PER_SECOND)
    visitors = env.from_source(visitor, WatermarkStrategy.no_watermarks(), "visitors")
    visitors.key_by(lambda user: user).map(CountVisits(), Types.STRING()).print()

    env.execute("time to live")


if __name__ == "__main__":
    main()
