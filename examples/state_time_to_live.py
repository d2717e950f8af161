"""Visits per user, forgotten after three seconds of silence: state with a time to live.

    python examples/state_time_to_live.py

State that nobody removes grows for ever. A time to live says how long a value is kept after it was last written (or,
with ``update_ttl_on_read_and_write``, last used). After that it reads as if it had never been, and it is removed in the
background even if nobody asks for it.

Alice visits and leaves, Bob visits all the time, and then Alice comes back: her count starts again at one, and Bob's
goes on.
"""

from firesteel.common import Configuration, Time, Types
from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import StateTtlConfig, ValueStateDescriptor

VISITORS = ["Alice"] * 3 + ["Bob"] * 12 + ["Alice"] * 3


class CountVisits(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        config = (
            StateTtlConfig.new_builder(Time.seconds(3))
            # A visit writes the count, and each write gives it another three seconds. This is the default.
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
    # Values age by processing time, and that is the same for all records of a micro-batch. Three visits a batch and a
    # batch a second: Bob is never away for long, and Alice for five seconds.
    settings = Configuration()
    settings.set_string("firesteel.batch.max-records", "3")
    settings.set_string("firesteel.batch.interval", "1 s")
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(1)

    visitors = env.from_collection(VISITORS, Types.STRING())
    visitors.key_by(lambda user: user).map(CountVisits(), Types.STRING()).print()

    env.execute("time to live")


if __name__ == "__main__":
    main()
