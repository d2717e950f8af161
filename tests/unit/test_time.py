"""Durations, instants and the texts that configuration files give them."""

from __future__ import annotations

import pickle

import pytest

from firesteel.common import Duration, Instant, Time
from firesteel.common.parsing import parse_duration_ms, parse_memory_bytes
from firesteel.errors import ConfigurationError


@pytest.mark.parametrize(
    ("millis", "text"),
    [  # java.time.Duration.toString
        (0, "PT0S"),
        (1, "PT0.001S"),
        (1500, "PT1.5S"),
        (-1500, "PT-1.5S"),
        (90000, "PT1M30S"),
        (108000001, "PT30H0.001S"),
        (-90500, "PT-1M-30.5S"),
    ],
)
def test_durations_print_as_in_java(millis: int, text: str) -> None:
    assert str(Duration.of_millis(millis)) == text


def test_durations_compare_and_pickle() -> None:
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440)
    assert Duration.of_nanos(999_999).to_millis() == 0
    assert Duration.of_seconds(1) < Duration.of_seconds(2)
    assert pickle.loads(pickle.dumps(Duration.of_millis(5))) == Duration.of_millis(5)
    assert len({Time.days(1), Time.hours(24), Time.minutes(1440), Time.seconds(86400)}) == 1


@pytest.mark.parametrize("millis", [0, 1, -1, -1000, -1500, 1_700_000_000_123])
def test_instants_come_back(millis: int) -> None:
    assert Instant.of_epoch_milli(millis).to_epoch_milli() == millis


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("10 s", 10_000),
        ("500ms", 500),
        ("1 min", 60_000),
        ("2h", 7_200_000),
        ("1 d", 86_400_000),
        ("42", 42),
        (" 3 Seconds ", 3000),
        ("1500 µs", 1),
        ("PT1.5S", 1500),
        ("P1DT2H", 93_600_000),
    ],
)
def test_durations_as_people_write_them(text: str, millis: int) -> None:
    assert parse_duration_ms(text) == millis


@pytest.mark.parametrize("text", ["", "s", "10 parsecs", "-5 s", "1.5 s", "P", "PT"])
def test_texts_that_are_no_durations(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a duration\. Write a number and a unit, such as '10 s'"):
        parse_duration_ms(text)


def test_memory_sizes_as_people_write_them() -> None:
    sizes = {"64mb": 64 << 20, "1 gb": 1 << 30, "512 kb": 512 << 10, "7": 7, "2 t": 2 << 40, "3 Bytes": 3}
    assert {text: parse_memory_bytes(text) for text in sizes} == sizes
    with pytest.raises(ConfigurationError, match="'64 mib' is not a memory size"):
        parse_memory_bytes("64 mib")
