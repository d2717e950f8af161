"""Where reading a topic begins and ends, and how that becomes numbers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from firesteel.connectors.kafka.errors import LastError, explained, load_client
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConfigurationError, ConnectorError, InputError

__all__ = ["SHORTER_SECONDS", "Cluster", "OffsetsSpec", "TopicPartition", "begin_of"]

logger = logging.getLogger("firesteel")

_SECONDS = 30.0
"""How long brokers that do not answer are waited for, unless ``default.api.timeout.ms`` says otherwise."""
_STEP = 2.0
"""Between two looks at what went wrong with connections: a password is not right the next time either."""
_SETTLING = (
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_OR_PART",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "UNSTABLE_OFFSET_COMMIT",
    *("OFFSET_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "REQUEST_TIMED_OUT"),
    "_NOENT",
    "_UNKNOWN_PARTITION",
)
"""What is said of a topic that was just made, or while brokers come back."""
_UNREACHED = ("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN")
_SETTLING_SECONDS = 10.0
SHORTER_SECONDS = 1.0
"""For so long a partition may seem to be shorter than it was: a broker that is back finds its end again."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def begin_of(start: Any, end: Any) -> int:
    """The offset from which the range between two positions is read (see :mod:`.enumerator`).

    >>> begin_of([7, None, "id"], [9, None, "id"]), begin_of([7, None, "id"], [3, None, "other id", 0])
    (7, 0)
    """
    return int(end[3] if len(end) > 3 else start[0])


@dataclass(frozen=True)
class OffsetsSpec:
    """Where to begin or to end: at the ``earliest`` or ``latest`` record, at a ``timestamp``, at ``offsets`` for each
    partition, or where the group has ``committed`` to be. ``reset`` is for partitions of which the latter two say
    nothing: ``earliest``, ``latest`` or ``none``."""

    kind: str
    timestamp: int = 0
    offsets: tuple[tuple[TopicPartition, int], ...] = field(default=())
    reset: str = "earliest"


class Cluster:
    """What the brokers know: topics, partitions, offsets."""

    def __init__(self, properties: KafkaProperties) -> None:
        self._kafka = load_client()
        self._properties = properties
        self._last = LastError()
        given = properties.get("default.api.timeout.ms")
        self._seconds = _SECONDS if given is None else int(given) / 1000
        self._quiet: dict[str, Any] = {"error_cb": self._last, "log_level": 0}
        group = properties.get("group.id") or "firesteel"
        try:
            # A consumer asks without creating topics, which an admin client does not.
            self._consumer = self._kafka.Consumer(
                {**properties.client(group_id=group, enable_auto_commit="false"), **self._quiet}
            )
            self._admin = self._new_admin()
        except self._kafka.KafkaException as error:
            raise explained(error, properties, "the start of a client") from None
        self._answered = False
        self._committed_only = properties.get("isolation.level") != "read_uncommitted"

    def _new_admin(self) -> Any:
        of_consumers = ("group.", "isolation.", "auto.offset.", "fetch.", "queued.", "max.poll", "session.", "check.")
        known = {name: value for name, value in self._properties.client().items() if not name.startswith(of_consumers)}
        return self._kafka.admin.AdminClient({**known, **self._quiet})

    def close(self) -> None:
        self._consumer.close()

    def partitions(self, wanted: Callable[[str], bool], topics: Iterable[str] | None) -> list[TopicPartition]:
        """All partitions of the topics, which are named, or else all that are wanted. In order."""
        found: list[TopicPartition] = self._settled(lambda: self._partitions(wanted, topics), "a look at the topics")
        return found

    def _partitions(self, wanted: Callable[[str], bool], topics: Iterable[str] | None) -> list[TopicPartition]:
        if topics is None:
            listed = self._consumer.list_topics(timeout=_STEP).topics
            # Names that begin so are Kafka's own.
            found = {name: topic for name, topic in listed.items() if wanted(name) and not name.startswith("__")}
        else:
            found = {name: self._consumer.list_topics(name, timeout=_STEP).topics[name] for name in topics}
        for name, topic in found.items():
            if topic.error is not None:
                raise _TopicError(topic.error, name)
        return [TopicPartition(name, number) for name in sorted(found) for number in sorted(found[name].partitions)]

    def _settled(self, ask: Callable[[], Any], doing: str) -> Any:
        begun = time.monotonic()
        if self._answered:
            # What connections went through since then is over, or comes again.
            self._look_at_connections()
            self._last.forget()
        while True:
            try:
                answer = ask()
                self._answered = True
                return answer
            except (self._kafka.KafkaException, _TopicError) as error:
                failure = error.args[0]
                self._look_at_connections()
                patience = self._seconds if failure.name() in _UNREACHED else min(_SETTLING_SECONDS, self._seconds)
                may_pass = failure.name() in (*_SETTLING, *_UNREACHED) and self._last.behind(failure) is failure
                if not may_pass or time.monotonic() - begun > patience:
                    where = f"{doing} (topic {error.topic!r})" if isinstance(error, _TopicError) else doing
                    raise explained(failure, self._properties, where, self._last.behind) from None
                time.sleep(0.1)
                # The old one goes by what it knew of a topic before there was a new partition.
                self._admin = self._new_admin()

    def _look_at_connections(self) -> None:
        # What went wrong with connections is reported here only.
        self._consumer.poll(0)
        self._admin.poll(0)

    def resolve(self, spec: OffsetsSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """What a specification means now, as numbers."""
        wanted = list(partitions)
        if spec.kind == "offsets":
            given = dict(spec.offsets)
            found = {one: given[one] for one in wanted if one in given}
        elif spec.kind == "committed":
            found = self.committed(wanted)
        elif spec.kind == "timestamp":
            # In this order: of a record that comes between the two questions nothing is missed.
            latest = self.latest(wanted)
            # Nothing is that late: -1.
            return {one: at if at >= 0 else latest[one] for one, at in self._at_time(wanted, spec.timestamp).items()}
        else:
            return self._asked(wanted, spec.kind)
        missing = [one for one in wanted if one not in found]
        if missing and spec.reset == "none":
            which = ", ".join(one.name for one in missing[:5])
            raise InputError(
                f"Kafka at {self._properties.servers}: there is no offset to begin with for {which}, and the strategy "
                "is NONE. Give offsets for all partitions, commit some for the group, or choose EARLIEST or LATEST."
            )
        return {**found, **self._asked(missing, spec.reset)} if missing else found

    def starts(self, spec: OffsetsSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where a specification says to begin. An offset that is not there, since it was deleted or the topic was made
        anew, is as good as none: the strategy decides."""
        wanted = list(partitions)
        found = self.resolve(spec, wanted)
        if spec.kind not in ("offsets", "committed"):
            return found
        first, end = self.earliest(wanted), self.latest(wanted)
        gone = [one for one in wanted if not first[one] <= found[one] <= end[one]]
        if gone and spec.reset == "none":
            one = gone[0]
            raise InputError(
                f"Kafka at {self._properties.servers}: {one.name} is to be read from offset {found[one]}, and there "
                f"are those from {first[one]} to {end[one]}. Its records were deleted, or the topic was made anew. "
                "Give another offset, or choose the strategy EARLIEST or LATEST."
            )
        if gone:
            which = ", ".join(f"{one.name} ({found[one]})" for one in gone[:5])
            logger.warning("these offsets are not there any more: %s. Reading begins at the %s", which, spec.reset)
        reset = first if spec.reset == "earliest" else end
        return {**found, **{one: reset[one] for one in gone}}

    def _at_time(self, partitions: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        return self._asked(partitions, "timestamp", timestamp)

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._asked(partitions, "earliest")

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How far they can be read now. What open transactions hold back is not there yet."""
        return self._asked(partitions, "latest")

    def _asked(self, partitions: Iterable[TopicPartition], kind: str, timestamp: int = 0) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        if not wanted:
            return {}
        offset_spec: Any = self._kafka.admin.OffsetSpec
        specs = {
            "earliest": offset_spec.earliest,
            "latest": offset_spec.latest,
            "timestamp": lambda: offset_spec.for_timestamp(timestamp),
        }
        levels = self._kafka.IsolationLevel
        level = levels.READ_COMMITTED if self._committed_only else levels.READ_UNCOMMITTED

        def ask() -> dict[TopicPartition, int]:
            request = {self._kafka.TopicPartition(*one): specs[kind]() for one in wanted}
            answers = self._admin.list_offsets(request, isolation_level=level, request_timeout=self._seconds)
            return {TopicPartition(one.topic, one.partition): got.result().offset for one, got in answers.items()}

        found: dict[TopicPartition, int] = self._settled(ask, f"a look at the {kind} offsets")
        return found

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the group has committed to be, for those of which that is known."""
        if self._properties.get("group.id") is None:
            raise ConfigurationError("KafkaOffsetsInitializer.committed_offsets() needs a group: set_group_id(…).")

        def ask() -> dict[TopicPartition, int]:
            asked = [self._kafka.TopicPartition(*one) for one in partitions]
            answers = self._consumer.committed(asked, timeout=self._seconds)
            for one in answers:
                if one.error is not None:
                    raise self._kafka.KafkaException(one.error)
            return {TopicPartition(one.topic, one.partition): one.offset for one in answers if one.offset >= 0}

        found: dict[TopicPartition, int] = self._settled(ask, "a look at the group's offsets")
        return found

    def begin_commit(self, offsets: Mapping[TopicPartition, int]) -> Callable[[float], bool]:
        """Commits offsets for the group, in the background: for those who watch it, and for jobs that begin there. The
        answer waits for so many seconds, says whether it is done, and raises if it went wrong."""
        given = [self._kafka.TopicPartition(*one, offset) for one, offset in offsets.items()]
        group = self._kafka.ConsumerGroupTopicPartitions(self._properties.get("group.id"), given)
        # Held: without its client an answer never comes.
        admin = self._admin
        (answer,) = admin.alter_consumer_group_offsets([group], request_timeout=self._seconds).values()

        def done(seconds: float) -> bool:
            assert admin is not None
            try:
                answer.result(seconds)
            except TimeoutError:
                return False
            except self._kafka.KafkaException as error:
                raise self.explained(error, "committing the group's offsets") from None
            return True

        return done

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """What tells topics from others that bore their names before, where the brokers know it."""
        wanted = sorted(set(topics))
        if not wanted:
            return {}

        def ask() -> dict[str, str]:
            answers = self._admin.describe_topics(self._kafka.TopicCollection(wanted), request_timeout=self._seconds)
            return {name: str(answer.result().topic_id) for name, answer in answers.items()}

        found: dict[str, str] = self._settled(ask, "a look at the topics")
        return found

    def first_committed(self) -> dict[TopicPartition, int]:
        """What the group has committed for the first partition of each topic, when no transaction is at work on it.

        By the consumer, which waits for such: the admin client ends the process with a segmentation fault where a
        broker answers that it is not the group's coordinator (yet), see librdkafka's issue 5040."""

        def ask() -> dict[TopicPartition, int]:
            # Whatever is wrong with a topic at the moment, its offsets are there.
            names = [name for name in self._consumer.list_topics(timeout=_STEP).topics if not name.startswith("__")]
            asked = [self._kafka.TopicPartition(name, 0) for name in names]
            answers = self._consumer.committed(asked, timeout=self._seconds) if asked else []
            for one in answers:
                if one.error is not None:
                    raise self._kafka.KafkaException(one.error)
            return {TopicPartition(one.topic, one.partition): one.offset for one in answers if one.offset >= 0}

        found: dict[TopicPartition, int] = self._settled(ask, "a look at the group's offsets")
        return found

    def group_metadata(self) -> Any:
        """What a producer needs to commit offsets of the group in a transaction."""
        return self._consumer.consumer_group_metadata()

    def topic_settings(self, topic: str) -> dict[str, str]:
        """The settings of a topic; none where the user may not know."""
        resource = self._kafka.admin.ConfigResource(self._kafka.admin.ConfigResource.Type.TOPIC, topic)
        try:
            (found,) = self._admin.describe_configs([resource], request_timeout=self._seconds).values()
            return {name: entry.value for name, entry in found.result().items()}
        except self._kafka.KafkaException:
            return {}

    def explained(self, error: Any, doing: str) -> ConnectorError:
        return explained(error, self._properties, doing, self._last.behind)


class _TopicError(Exception):
    def __init__(self, error: Any, topic: str) -> None:
        super().__init__(error)
        self.topic = topic
