"""What goes wrong with Kafka, in a line that says where, what and what to do."""

from __future__ import annotations

import importlib
import logging
import re
import time
from collections.abc import Callable
from typing import Any

from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.errors import ConnectorError, FailureKind, InputError, SetupError

__all__ = ["LastError", "explained", "load_client", "load_transactions", "lost_records", "refusal"]

_PERMANENT = FailureKind.PERMANENT
_PASSING = FailureKind.PASSING

_MEANING: dict[str, tuple[FailureKind, str]] = {
    "UNKNOWN_TOPIC_OR_PART": (_PERMANENT, "Create the topic, or check its name."),
    "_UNKNOWN_TOPIC": (_PERMANENT, "Create the topic, or check its name."),
    "_UNKNOWN_PARTITION": (_PERMANENT, "Check the number of the topic's partitions."),
    "TOPIC_EXCEPTION": (_PERMANENT, "Check the topic's name."),
    "TOPIC_AUTHORIZATION_FAILED": (_PERMANENT, "Grant the user the right to use the topic."),
    "GROUP_AUTHORIZATION_FAILED": (_PERMANENT, "Grant the user the right to use the group."),
    "CLUSTER_AUTHORIZATION_FAILED": (_PERMANENT, "Grant the user the right to do it."),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        _PERMANENT,
        "Grant the user the rights to write and to describe transactional ids with the sink's prefix.",
    ),
    "_AUTHENTICATION": (_PERMANENT, "Check the user name and the password, and the mechanism."),
    "SASL_AUTHENTICATION_FAILED": (_PERMANENT, "Check the user name and the password, and the mechanism."),
    "_SSL": (_PERMANENT, "Check security.protocol and the certificates."),
    "UNSUPPORTED_SASL_MECHANISM": (_PERMANENT, "Check sasl.mechanism."),
    "INVALID_TRANSACTION_TIMEOUT": (
        _PERMANENT,
        "The sink's transaction.timeout.ms must not exceed the broker's transaction.max.timeout.ms.",
    ),
    **dict.fromkeys(
        ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"),
        (_PERMANENT, "Raise max.request.size of the sink and max.message.bytes of the topic, or make records smaller."),
    ),
    **dict.fromkeys(
        ("INVALID_RECORD", "INVALID_TIMESTAMP"),
        (
            _PERMANENT,
            "The topic does not take such a record: a compacted one needs keys, and a timestamp, which is the record's "
            "event time, may be ahead of the broker's clock by message.timestamp.after.max.ms, an hour by default.",
        ),
    ),
    **dict.fromkeys(
        ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"),
        (_PASSING, "Another process has fenced this producer: it has taken over, or has aborted the transaction."),
    ),
    **dict.fromkeys(
        ("INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING", "UNKNOWN_PRODUCER_ID", "CONCURRENT_TRANSACTIONS"),
        (_PASSING, "Something else has happened to the transaction meanwhile; it is looked at anew."),
    ),
    "_INVALID_ARG": (_PERMANENT, "Check the properties that were set."),
    "_TRANSPORT": (_PASSING, "Check the address, and whether the brokers run."),
    "_ALL_BROKERS_DOWN": (_PASSING, "Check the address, and whether the brokers run."),
    "_RESOLVE": (_PASSING, "Check the address."),
    "_TIMED_OUT": (_PASSING, "Check the address, and whether the brokers run."),
    "REQUEST_TIMED_OUT": (_PASSING, "Check whether the brokers run."),
}
"""By the name that the client has for an error. What is not here may pass, unless somebody knows better."""

_LOOK_SECONDS = 0.3
_TELLING = ("_AUTHENTICATION", "_SSL", "_RESOLVE", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM")
"""Errors that say more than the time-out they lead to."""
_CUT_OFF = re.compile(r"(?i)transport failure|disconnected|timed out|destroyed")
"""What the client says of a connection that it lost while it logged in, under the name of a refusal."""
_FRESH_SECONDS = 60.0
"""So old a report may be. A client repeats one after half a minute, and the time until it tries again."""


def load_client() -> Any:
    """The module ``confluent_kafka``, with its ``admin``."""
    _load("confluent_kafka.admin", "confluent-kafka")
    return _load("confluent_kafka", "confluent-kafka")


def load_transactions(module: str = "kafka") -> Any:
    """The module ``kafka``, or one below it."""
    log = logging.getLogger("kafka")
    if log.level == logging.NOTSET:
        # It reports as an error each time that a broker is not there, which is waited for here.
        log.setLevel(logging.CRITICAL)
    return _load(module, "kafka-python")


def _load(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SetupError(
            f"Kafka's source and sink need the package {package}, which cannot be imported here ({error}). "
            "Install it where the job runs: pip install 'firesteel[kafka]'."
        ) from None


def _meant(error: Any) -> str:
    """The name of what an error is about."""
    name = str(error.name())
    return "_TRANSPORT" if name == "_AUTHENTICATION" and _CUT_OFF.search(error.str()) else name


class LastError:
    """What a client last said of its connections: it tries again for ever, and a call that waits for it only times
    out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.error: Any = None
        self._clock, self._at = clock, 0.0

    def __call__(self, error: Any) -> None:
        if _meant(error) in _TELLING or not self._tells():
            self.error, self._at = error, self._clock()

    def _tells(self) -> bool:
        return self.error is not None and _meant(self.error) in _TELLING and self._clock() - self._at <= _FRESH_SECONDS

    def forget(self) -> None:
        """Brokers have answered: what was said before that is over."""
        self.error = None

    def behind(self, error: Any) -> Any:
        """The reason of an error, where that is known to be another one."""
        timed_out = error is None or _meant(error) in ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")
        return self.error if timed_out and self._tells() else error


def refusal(properties: KafkaProperties, seconds: float = 3.0) -> Any:
    """Why brokers do not let these properties in; None if they do, or if they cannot be asked."""
    kafka, last = load_client(), LastError()
    soon = {"reconnect_backoff_max_ms": 500}
    try:
        client = kafka.admin.AdminClient({**properties.client(**soon), "error_cb": last, "log_level": 0})
    except kafka.KafkaException as error:
        raise explained(error, properties, "the start of a client") from None
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        try:
            # Not for all of the time at once: a call that waits does not end when the reason is known.
            client.list_topics(timeout=min(left, _LOOK_SECONDS))
            return None
        except kafka.KafkaException as error:
            # What went wrong with connections is reported here only.
            client.poll(0)
            found = last.behind(error.args[0])
            if _meant(found) in _TELLING:
                return found
    return None


def explained(
    error: Any,
    properties: KafkaProperties,
    doing: str,
    last: Callable[[Any], Any] | None = None,
    otherwise: FailureKind = _PASSING,
) -> ConnectorError:
    """A KafkaError, or an exception with one, as an error of ours. ``otherwise`` is the kind of one that is not known
    here."""
    given = error.args[0] if isinstance(error, BaseException) and error.args else error
    given = last(given) if last is not None and hasattr(given, "name") else given
    if not hasattr(given, "name"):
        return ConnectorError(f"Kafka at {properties.servers}: {doing} failed: {properties.mask(str(error))}")
    kind, advice = _MEANING.get(_meant(given), (otherwise, ""))
    said = properties.mask(" ".join(given.str().split()))
    name = given.name().lstrip("_")
    return ConnectorError(
        f"Kafka at {properties.servers}: {doing} failed: {said} ({name}). {advice}".rstrip(), kind=kind
    )


def lost_records(properties: KafkaProperties, partition: str, wanted: int, first: int) -> InputError:
    """Records that a job has yet to read are not there."""
    return InputError(
        f"Kafka at {properties.servers}: the records of {partition} from offset {wanted} on, which the job has yet to "
        f"read, are not there any more: the first one is at {first}. The topic's retention has deleted them, or the "
        "topic was made anew. Set the source's property fail.on.data.loss to 'false' to go on with the first one, or "
        "start the job without its checkpoint."
    )
