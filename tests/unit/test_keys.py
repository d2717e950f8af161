"""Where a key lives: the same on every run, machine and Python version, and equal keys in one place."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import os
import subprocess
import sys
import uuid
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, RowKind
from firesteel.errors import UnstableKeyError
from firesteel.runtime.keys import KeyRoutes, key_group, stable_hash, subtask_of
from firesteel.runtime.state.pages import pages_of

UTC = datetime.UTC
CET = datetime.timezone(datetime.timedelta(hours=1))


@dataclasses.dataclass(frozen=True)
class Seat:
    row: str
    number: int
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass
class Changing:
    row: str


@dataclasses.dataclass(frozen=True)
class Holder:
    items: Any


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    HELLO = "hello"


Pair = namedtuple("Pair", "left right")

# These numbers are a promise: state that was written yesterday must be found today.
GOLDEN: list[tuple[Any, int]] = [
    ("", 0),
    ("a", 3904355907),
    ("user-1", 2116437524),
    ("äöü €", 3758883727),
    ("\ud800", 499426600),
    (b"", 0),
    (b"a", 3904355907),
    (b"\x00\xff", 1826356594),
    (0, 0),
    (1, 824515495),
    (-1, 824515495),
    (2**31, 1029333365),
    (2**63, 3444516145),
    (-(2**70), 48111961),
    (0.5, 3042180434),
    (-2.75, 476412341),
    (1e300, 4278787053),
    (float("inf"), 1681433144),
    (True, 824515495),
    (None, 2654435769),
    ((), 17),
    (("a", 1), 2155183378),
    ((1, ("a", None)), 3826085508),
    (frozenset({1, "a"}), 117078842),
    (Row("a", 1), 3544460533),
    (Row(name="a", age=1), 2511730711),
    (Row(), 19),
    (Seat("A", 1), 528834602),
    (datetime.date(2024, 2, 29), 1736554509),
    (datetime.datetime(2024, 2, 29, 12, 30), 1119239873),
    (datetime.datetime(2024, 2, 29, 12, 30, 0, 5, UTC), 3401619453),
    (datetime.time(12, 30), 3291228762),
    (datetime.time(12, 30, tzinfo=UTC), 334113070),
    (datetime.timedelta(days=1, seconds=2, microseconds=3), 936519565),
    (Decimal("1.5"), 2138707476),
    (Decimal("-0.1"), 3567561698),
    (Colour.RED, 3383338245),
    (Colour.BLUE, 1762132291),
    (uuid.UUID(int=5), 623548606),
    (1 + 2j, 2096478444),
]


def name_of(key: Any) -> str:
    """The same in every process, which the order of a set's elements is not."""
    return f"frozenset({sorted(map(ascii, key))})" if isinstance(key, frozenset) else ascii(key)


@pytest.mark.parametrize(("key", "expected"), GOLDEN, ids=[name_of(key) for key, _ in GOLDEN])
def test_golden_values(key: Any, expected: int) -> None:
    assert stable_hash(key) == expected
    assert 0 <= stable_hash(key) < 2**32


EQUAL: list[tuple[Any, ...]] = [
    (1, 1.0, True, Decimal(1), Decimal("1.00"), Fraction(1), Level.LOW, 1 + 0j),
    (0, 0.0, -0.0, False, Decimal(0)),
    (2**60, float(2**60), Decimal(2**60)),
    (0.5, Decimal("0.5"), Fraction(1, 2)),
    ("hello", Word.HELLO),
    ((1, 2), (1.0, True + 1), Pair(1, 2)),
    (Row(a=1, b=2), Row(b=2, a=1), Row(a=1.0, b=2)),
    (Seat("A", 1), Seat("A", 1, note="other"), Seat("A", True)),
    (frozenset({1, 2}), frozenset({2.0, 1.0})),
    (
        datetime.datetime(2024, 1, 1, 12, tzinfo=UTC),
        datetime.datetime(2024, 1, 1, 13, tzinfo=CET),
    ),
    (datetime.datetime(2024, 1, 1, 2, fold=0), datetime.datetime(2024, 1, 1, 2, fold=1)),
    (datetime.time(12, tzinfo=UTC), datetime.time(13, tzinfo=CET)),
    (datetime.time(1, fold=0), datetime.time(1, fold=1)),
    (datetime.timedelta(hours=24), datetime.timedelta(days=1)),
]


@pytest.mark.parametrize("keys", EQUAL, ids=[ascii(keys[0]) for keys in EQUAL])
def test_keys_that_are_equal_share_a_place(keys: tuple[Any, ...]) -> None:
    assert len(set(keys)) == 1
    assert len({stable_hash(key) for key in keys}) == 1


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.text(),
    st.binary(),
    st.datetimes(timezones=st.sampled_from([None, UTC, CET])),
    st.dates(),
    st.times(timezones=st.sampled_from([None, UTC, CET])),
    st.timedeltas(),
    st.uuids(),
)
KEYS = st.one_of(SCALARS, st.tuples(SCALARS, SCALARS), st.frozensets(SCALARS, max_size=2))


@given(KEYS, KEYS)
def test_equal_as_dict_keys_means_equal_hashes(one: Any, other: Any) -> None:
    if one == other:
        assert stable_hash(one) == stable_hash(other)
    assert 0 <= stable_hash(one) < 2**32


@given(st.one_of(st.integers(), st.fractions(), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_number_hashes_alike_in_every_type_that_holds_it(number: Any) -> None:
    twins = [number, Fraction(number)]
    if Fraction(number).denominator == 1:
        twins += [int(number), Decimal(int(number))]
    assert len({stable_hash(twin) for twin in twins}) == 1


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ([1], r"A key of type list cannot be hashed: \[1\]\. In the key selector, return tuple\(\.\.\.\) of it"),
        ({1}, r"A key of type set cannot be hashed: \{1\}\. .*return frozenset\(\.\.\.\) of it instead"),
        ({"a": 1}, r"A key of type dict cannot be hashed.*return tuple\(sorted\(d\.items\(\)\)\) of it instead"),
        (bytearray(b"a"), r"A key of type bytearray cannot be hashed.*return bytes\(\.\.\.\) of it instead"),
        (Changing("A"), r"A key of type Changing cannot be hashed.*make it a frozen dataclass"),
        ((1, [2]), r"A key of type list cannot be hashed: \[2\]"),
        (Holder([2]), r"A key of type list cannot be hashed: \[2\]"),
        (Row([2]), r"A key of type list cannot be hashed: \[2\]"),
        (Row(a=[2]), r"A key of type list cannot be hashed: \[2\]"),
        pytest.param(
            object(),
            r"A key of type object has no hash that is the same in every process.*Use str, bytes, int",
            # Its text has an address, which differs in each process.
            id="object()",
        ),
        (len, r"A key of type builtin_function_or_method has no hash that is the same"),
        (Seat, r"A key of type type has no hash that is the same"),
        (float("nan"), r"A NaN cannot be a key: it is not equal to itself.*for example by None"),
        (Decimal("NaN"), r"A NaN cannot be a key"),
        (("a", float("nan")), r"A NaN cannot be a key"),
    ],
    ids=ascii,
)
def test_a_key_that_is_refused_says_what_to_do(key: Any, text: str) -> None:
    with pytest.raises(UnstableKeyError, match=text):
        stable_hash(key)


def test_the_kind_of_a_row_makes_it_another_key_in_the_same_place() -> None:
    insert, delete = Row("a"), Row.of_kind(RowKind.DELETE, "a")
    assert insert != delete
    assert stable_hash(insert) == stable_hash(delete)


SCRIPT = """
import datetime, json, sys, uuid
from decimal import Decimal
from firesteel.common import Row
from firesteel.runtime.keys import stable_hash
keys = ["a", b"a", 1, 0.1, None, ("a", 1), frozenset("abc"), Row(a="x", b="y"), datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1, 1), Decimal("0.1"), uuid.UUID(int=1)]
print(json.dumps([stable_hash(key) for key in keys] + [hash("a")]))
"""


def test_another_process_with_another_hash_seed_computes_the_same() -> None:
    def hashes(seed: str) -> list[int]:
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=300,
        )
        found: list[int] = json.loads(run.stdout)
        return found

    *one, python_one = hashes("1")
    *two, python_two = hashes("2")
    assert one == two
    assert python_one != python_two


@pytest.mark.parametrize(
    "make",
    [
        lambda n: n,
        lambda n: -n,
        lambda n: n * 1000,
        lambda n: n / 8,
        str,
        lambda n: f"user-{n}",
        lambda n: f"{n:08d}",
        lambda n: f"2024-01-{n % 28:02d}T{n}",
        lambda n: str(uuid.UUID(int=n)),
        lambda n: (n, "a"),
        lambda n: ("a", n),
        lambda n: b"%d" % n,
        lambda n: datetime.date.fromordinal(700_000 + n),
    ],
)
def test_alike_keys_spread_over_key_groups_and_pages(make: Any) -> None:
    keys = [make(number) for number in range(12_800)]
    hashes = [stable_hash(key) for key in keys]
    groups = [key_group(hashed, 128) for hashed in hashes]
    counts = [groups.count(group) for group in range(128)]
    # A hundred each on average.
    assert min(counts) > 40
    assert max(counts) < 200
    # The keys of one of four subtasks, over the pages of its tables.
    own = [key for key, group in zip(keys, groups, strict=True) if subtask_of(group, 128, 4) == 1]
    pages = pages_of(own, 32)
    assert min(pages.count(page) for page in range(32)) > 30


@given(st.integers(1, 64), st.integers(0, 500))
def test_each_subtask_owns_a_contiguous_range_of_key_groups(parallelism: int, extra: int) -> None:
    most = parallelism + extra
    owners = [subtask_of(group, most, parallelism) for group in range(most)]
    assert owners == sorted(owners)
    assert set(owners) == set(range(parallelism))


def test_routes_are_the_same_remembered_and_computed() -> None:
    routes = KeyRoutes(3, 128)
    expected = subtask_of(key_group(stable_hash("a"), 128), 128, 3)
    assert routes["a"] == routes["a"] == expected
    assert routes[1] == routes[1.0] == routes[True]
    assert len(routes) == 2
    routes.LIMIT = 2  # type: ignore[misc]
    for keys in (["a", "b", "é", ""], ["a", 1, ("a", 2)], [b"a"], ["a", "\ud800"]):
        assert routes.of(keys) == [subtask_of(key_group(stable_hash(key), 128), 128, 3) for key in keys]
    assert len(routes) == 2
    assert KeyRoutes(3, 128).of(["a", "b"]) == routes.of(["a", "b"])
