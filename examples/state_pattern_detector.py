"""Detects what users do one after the other, by patterns that arrive as a stream: broadcast state.

    python examples/state_pattern_detector.py

Patterns are rules that may change while the job runs. Every subtask needs all of them, so their stream is broadcast:
each subtask gets each pattern and keeps it in a map, the broadcast state. The actions are split by user, and the user's
last action is kept in keyed state.
"""

from collections.abc import Iterator
from typing import NamedTuple

from firesteel.common import Types
from firesteel.datastream import KeyedBroadcastProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import MapStateDescriptor, ValueStateDescriptor


class Action(NamedTuple):
    user: str
    action: str


class Pattern(NamedTuple):
    first: str
    then: str


ACTIONS = [
    Action("Alice", "login"),
    Action("Alice", "pay"),
    Action("Bob", "login"),
    Action("Cary", "login"),
    Action("Bob", "buy"),
    Action("Cary", "logout"),
    Action("Alice", "logout"),
]
PATTERNS = [Pattern("login", "pay"), Pattern("login", "buy")]

# The descriptor names the state; who asks for it by an equal one gets the same map.
KNOWN_PATTERNS = MapStateDescriptor("patterns", Types.STRING(), Types.PICKLED_BYTE_ARRAY())


class PatternDetector(KeyedBroadcastProcessFunction[str, Action, Pattern, str]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last action", Types.STRING()))

    def process_broadcast_element(self, value: Pattern, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        # Called in every subtask. There is no current user here, but the broadcast state may be changed. All
        # subtasks must change it in the same way, so decide by the element alone.
        ctx.get_broadcast_state(KNOWN_PATTERNS).put(f"{value.first}-{value.then}", value)

    def process_element(self, value: Action, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[str]:
        # Called in the subtask of the user. The broadcast state can be read, not changed.
        before = self.last.value()
        for pattern in ctx.get_broadcast_state(KNOWN_PATTERNS).values():
            if before == pattern.first and value.action == pattern.then:
                yield f"({ctx.get_current_key()}, {pattern})"
        self.last.update(value.action)


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    # In a micro-batch, broadcast records come before the others: the patterns are known when the actions arrive.
    patterns = env.from_collection(PATTERNS).broadcast(KNOWN_PATTERNS)
    actions = env.from_collection(ACTIONS).key_by(lambda action: action.user)
    actions.connect(patterns).process(PatternDetector(), Types.STRING()).print()

    env.execute("pattern detector")


if __name__ == "__main__":
    main()
