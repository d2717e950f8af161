"""Pickled state is looked into without running code: only plain values are loaded."""

from __future__ import annotations

import fractions
import os
import pickle
import zoneinfo
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from firesteel.common import Row
from firesteel.state_processor.plain_values import NotPlainError, load_plain

AT = datetime(2024, 1, 1, 12)


@pytest.mark.parametrize(
    "value",
    [
        ("a", 1, None, 2.5, b"x", [True], {"k": {1, 2}}),
        (Decimal("1.50"), date(2024, 1, 1), AT, timedelta(1), AT.replace(tzinfo=UTC)),
        AT.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        pa.array([1], pa.timestamp("ns")).to_pylist(),
        pa.array([1], pa.timestamp("ns", "UTC")).to_pylist(),
        Row(a=1, b="x"),
    ],
    ids=["basic", "times", "zone", "nanoseconds", "nanoseconds of a zone", "row"],
)
def test_plain_values_come_back(value: Any) -> None:
    assert load_plain(pickle.dumps(value)) == value


class Method:
    """A pickle of it gets another method of a class that is allowed."""

    def __reduce__(self) -> Any:
        return getattr, (zoneinfo.ZoneInfo, "from_file")


class Command:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (fractions.Fraction(1, 2), "fractions.Fraction"),
        (Command(), f"{os.system.__module__}.system"),
        (Method(), "builtins.getattr of 'from_file'"),
        (print, "builtins.print"),
    ],
    ids=["object", "command", "method", "function"],
)
def test_anything_else_is_named_and_not_loaded(value: Any, name: str) -> None:
    with pytest.raises(NotPlainError) as raised:
        load_plain(pickle.dumps(value))
    assert raised.value.name == name
