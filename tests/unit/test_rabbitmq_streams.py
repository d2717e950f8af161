"""Where streams of RabbitMQ are read from: with a broker that takes its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.connectors.rabbitmq import streams
from firesteel.connectors.rabbitmq.connecting import RabbitAddress
from firesteel.connectors.rabbitmq.streams import StreamEnumerator, _Reading
from firesteel.errors import ConnectorError, FailureKind, InputError

ADDRESS = RabbitAddress.of_uri("amqp://ada:secret@broker/shop")


class _Clock:
    """Moves on by what somebody waits."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[float | int]], None]:
    """A broker that sends offsets, after so many seconds where there is a float; then nothing. It has as many messages
    as it sends."""

    clock = _Clock()

    def script(sent: list[float | int]) -> None:
        def messages(self: _Reading, stream: str, offset: int | str, wait: float) -> Iterator[tuple[int, bytes] | None]:
            for one in sent:
                if isinstance(one, int):
                    yield one, b"x"
                    continue
                left = one
                while left >= wait:
                    clock.now += wait
                    left -= wait
                    yield None
                clock.now += left
            while True:
                clock.now += wait
                yield None

        monkeypatch.setattr(streams, "time", clock)
        monkeypatch.setattr(_Reading, "messages", messages)
        count = sum(isinstance(one, int) for one in sent)
        monkeypatch.setattr(_Reading, "count", lambda self, stream: count)

    return script


def starts(start: Any) -> Any:
    return StreamEnumerator(ADDRESS, ["s"], start, bounded=False).starts({"s": "s"}, True)["s"]


def test_the_first_message_may_take_its_time(broker: Callable[[list[float | int]], None]) -> None:
    broker([2.0, 1000])
    assert starts("first") == 1000
    broker([2.0, 1000, 1001, 0.3, 1002])
    assert starts("next") == 1003


def test_an_empty_stream_begins_at_its_beginning(broker: Callable[[list[float | int]], None]) -> None:
    broker([])
    assert starts("first") == 0
    assert starts("next") == 0


def test_a_look_for_new_messages_does_not_take_an_empty_answer_for_the_end(
    broker: Callable[[list[float | int]], None],
) -> None:
    broker([0.2, 7])
    source = StreamEnumerator(ADDRESS, ["s"], "first", bounded=False)
    assert source.ends({"s": "s"}, {"s": 5}) == {"s": 8}


def test_the_end_of_a_bounded_source(broker: Callable[[list[float | int]], None]) -> None:
    broker([3.0, 7, 0.5, 8])
    source = StreamEnumerator(ADDRESS, ["s"], "first", bounded=True)
    assert source.starts({"s": "s"}, True) == {"s": [7, 9]}
    assert not source.finished("s", [8, 9])
    assert source.finished("s", [9, 9])


def test_a_message_that_takes_too_long_is_no_empty_stream(
    broker: Callable[[list[float | int]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "RETRY_SECONDS", 0.0)
    broker([6.0, 7])
    for start, bounded in (("first", False), ("next", False), (0, True)):
        source = StreamEnumerator(ADDRESS, ["s"], start, bounded)
        with pytest.raises(ConnectorError, match=r"has 1 messages of the stream 's', and has sent none") as caught:
            source.starts({"s": "s"}, True)
        assert caught.value.kind is FailureKind.PASSING


def _looks(source: StreamEnumerator, at: Any, seconds: float) -> Any:
    """What many looks in so many seconds find."""
    clock = streams.time
    end, found = clock.monotonic() + seconds, None
    while clock.monotonic() < end:
        clock.now += 0.5  # type: ignore[attr-defined]
        found = source.ends({"s": "s"}, {"s": at})
    return found


@pytest.mark.parametrize("at", [30, [30, 40]])
def test_a_stream_that_was_declared_anew(broker: Callable[[list[float | int]], None], at: Any) -> None:
    broker([3, 4])
    source = StreamEnumerator(ADDRESS, ["s"], "first", bounded=isinstance(at, list))
    assert _looks(source, at, 2.0) == {}, "a look may have ended too early"
    text = r"ends before the offset 5, and messages up to 29 were read: it was deleted and declared anew"
    with pytest.raises(InputError, match=text):
        _looks(source, at, 10.0)


def test_a_stream_whose_last_message_takes_its_time_was_not_declared_anew(
    broker: Callable[[list[float | int]], None],
) -> None:
    source = StreamEnumerator(ADDRESS, ["s"], "first", bounded=False)
    # Looks end after the first message of several.
    broker([28, 0.2, 29])
    assert _looks(source, 30, 10.0) == {}
    broker([28])
    assert _looks(source, 30, 2.0) == {}
    broker([28, 29])
    assert _looks(source, 30, 2.0) == {}
    broker([28])
    assert _looks(source, 30, 4.0) == {}, "that it was all there in between counts"


def test_a_start_in_the_future_and_an_empty_look_are_no_other_stream(
    broker: Callable[[list[float | int]], None],
) -> None:
    broker([3, 4])
    assert _looks(StreamEnumerator(ADDRESS, ["s"], 30, bounded=False), 30, 20.0) == {}
    broker([])
    assert _looks(StreamEnumerator(ADDRESS, ["s"], "first", bounded=False), 30, 20.0) == {}
