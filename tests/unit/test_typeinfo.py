"""Types: what they accept, what they make of it and how it prints, as a table taken from PyFlink 2.3.0."""

from __future__ import annotations

import datetime as dt
import enum
import math
import pickle
from collections import namedtuple
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Instant, Row, RowKind, TypeInformation, Types
from firesteel.common.typeinfo import LocalTimeTypeInfo
from firesteel.errors import ProgramError

T = Types
NAMED = T.ROW_NAMED(["a", "b"], [T.STRING(), T.INT()])
PAIR = T.TUPLE([T.STRING(), T.INT()])
UNNAMED = T.ROW([T.STRING(), T.INT()])


def row(names: str, *values: Any, kind: RowKind = RowKind.INSERT) -> Row:
    made = Row(*values)
    made.set_field_names(names.split())
    made.set_row_kind(kind)
    return made


class Color(str, enum.Enum):  # noqa: UP042 - a StrEnum would print differently
    RED = "red"


class Size(enum.IntEnum):
    L = 3


class Thing:
    def __init__(self) -> None:
        self.a, self.b, self.c = "x", 1, 2


Point = namedtuple("Point", "x y")

# type, what a function returned, what the next one received, what print() showed
PYFLINK = [
    (T.STRING(), "é", "é", "é"),
    (T.STRING(), "", "", ""),
    (T.BYTE(), -128, -128, "-128"),
    (T.SHORT(), -32768, -32768, "-32768"),
    (T.INT(), 2147483647, 2147483647, "2147483647"),
    (T.LONG(), -(2**63), -(2**63), "-9223372036854775808"),
    (T.BOOLEAN(), True, True, "true"),
    (T.FLOAT(), 0.1, 0.10000000149011612, "0.1"),
    (T.FLOAT(), 1e10, 1e10, "1.0E10"),
    (T.FLOAT(), 3.4e38, 3.3999999521443642e38, "3.4E38"),
    (T.FLOAT(), 1e-5, 9.999999747378752e-06, "1.0E-5"),
    (T.FLOAT(), 1234567.0, 1234567.0, "1234567.0"),
    (T.FLOAT(), 12345678.0, 12345678.0, "1.2345678E7"),
    (T.FLOAT(), 0.001, 0.0010000000474974513, "0.001"),
    (T.FLOAT(), 16777217.0, 16777216.0, "1.6777216E7"),
    (T.FLOAT(), 3.3, 3.299999952316284, "3.3"),
    (T.FLOAT(), 1e39, math.inf, "Infinity"),
    (T.FLOAT(), 1, 1.0, "1.0"),
    (T.DOUBLE(), 0.1, 0.1, "0.1"),
    (T.DOUBLE(), 1e7, 1e7, "1.0E7"),
    (T.DOUBLE(), 9999999.0, 9999999.0, "9999999.0"),
    (T.DOUBLE(), 0.001, 0.001, "0.001"),
    (T.DOUBLE(), 9.9e-4, 9.9e-4, "9.9E-4"),
    (T.DOUBLE(), 123456789.125, 123456789.125, "1.23456789125E8"),
    (T.DOUBLE(), 1e100, 1e100, "1.0E100"),
    (T.DOUBLE(), 5e-324, 5e-324, "4.9E-324"),
    (T.DOUBLE(), 1.7976931348623157e308, 1.7976931348623157e308, "1.7976931348623157E308"),
    (T.DOUBLE(), -math.inf, -math.inf, "-Infinity"),
    (T.DOUBLE(), -0.0, -0.0, "-0.0"),
    (T.DOUBLE(), 2.0**53, 2.0**53, "9.007199254740992E15"),
    (T.DOUBLE(), 2, 2.0, "2.0"),
    (T.DOUBLE(), Decimal("1.5"), 1.5, "1.5"),
    (T.BIG_DEC(), Decimal("1.50"), Decimal("1.50"), "1.50"),
    (T.BIG_DEC(), Decimal("1E+5"), Decimal("1E+5"), "1E+5"),
    (T.BIG_DEC(), Decimal("1E-10"), Decimal("1E-10"), "1E-10"),
    (T.BIG_DEC(), Decimal("-0.00"), Decimal("0.00"), "0.00"),
    (T.BIG_DEC(), 5, Decimal("5"), "5"),
    (T.BIG_DEC(), 5.5, Decimal("5.5"), "5.5"),
    (T.INSTANT(), Instant(0, 0), Instant(0, 0), "1970-01-01T00:00:00Z"),
    (T.INSTANT(), Instant(1, 500_000_000), Instant(1, 500_000_000), "1970-01-01T00:00:01.500Z"),
    (
        T.INSTANT(),
        Instant(1700000000, 123456789),
        Instant(1700000000, 123456789),
        "2023-11-14T22:13:20.123456789Z",
    ),
    (T.SQL_DATE(), dt.date(1960, 1, 2), dt.date(1960, 1, 2), "1960-01-02"),
    (T.SQL_DATE(), dt.datetime(2020, 1, 2, 3, 4), dt.date(2020, 1, 2), "2020-01-02"),
    (T.SQL_TIME(), dt.time(1, 2, 3, 456789), dt.time(1, 2, 3, 456000), "01:02:03"),
    (
        T.SQL_TIMESTAMP(),
        dt.datetime(2020, 1, 2, 3, 4, 5),
        dt.datetime(2020, 1, 2, 3, 4, 5),
        "2020-01-02 03:04:05.0",
    ),
    (
        T.SQL_TIMESTAMP(),
        dt.datetime(2020, 1, 2, 3, 4, 5, 123456),
        dt.datetime(2020, 1, 2, 3, 4, 5, 123000),
        "2020-01-02 03:04:05.123",
    ),
    (
        T.SQL_TIMESTAMP(),
        dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        dt.datetime(2020, 1, 2, 3, 4, 5),
        "2020-01-02 03:04:05.0",
    ),
    (T.LIST(T.STRING()), ["a", "b"], ["a", "b"], "[a, b]"),
    (T.LIST(T.DOUBLE()), [1.0, 2.0], [1.0, 2.0], "[1.0, 2.0]"),
    (T.MAP(T.STRING(), T.INT()), {"a": 1, "b": 2}, {"a": 1, "b": 2}, "{a=1, b=2}"),
    (T.MAP(T.STRING(), T.INT()), {"zz": None}, {"zz": None}, "{zz=null}"),
    (T.MAP(T.STRING(), T.INT()), {}, {}, "{}"),
    (T.MAP(T.STRING(), T.LIST(T.DOUBLE())), {"a": [1.0]}, {"a": [1.0]}, "{a=[1.0]}"),
    (T.MAP(T.INT(), T.ROW([T.INT()])), {1: Row(2)}, {1: row("f0", 2)}, "{1=+I[2]}"),
    (
        T.TUPLE([T.STRING(), T.INT(), T.DOUBLE(), T.BOOLEAN()]),
        ("a", 1, 1.5, True),
        ("a", 1, 1.5, True),
        "(a,1,1.5,true)",
    ),
    (
        T.TUPLE(
            [
                T.TUPLE([T.INT(), T.STRING()]),
                T.LIST(T.INT()),
                T.ROW([T.INT()]),
                T.MAP(T.STRING(), T.FLOAT()),
            ]
        ),
        ((1, "x"), [1, 2], Row(5), {"k": 0.1}),
        ((1, "x"), [1, 2], row("f0", 5), {"k": 0.10000000149011612}),
        "((1,x),[1, 2],+I[5],{k=0.1})",
    ),
    (
        T.TUPLE([T.SQL_DATE(), T.SQL_TIME(), T.SQL_TIMESTAMP(), T.BIG_DEC(), T.PRIMITIVE_ARRAY(T.BYTE())]),
        (dt.date(2020, 1, 2), dt.time(1, 2, 3), dt.datetime(2020, 1, 2, 3, 4, 5), Decimal("1.50"), b"ab"),
        (dt.date(2020, 1, 2), dt.time(1, 2, 3), dt.datetime(2020, 1, 2, 3, 4, 5), Decimal("1.50"), b"ab"),
        "(2020-01-02,01:02:03,2020-01-02 03:04:05.0,1.50,[97, 98])",
    ),
    (UNNAMED, Row("a", 1), row("f0 f1", "a", 1), "+I[a,1]"),
    (UNNAMED, Row(None, None), row("f0 f1", None, None), "+I[None,None]"),
    (NAMED, Row(a="x", b=1), row("a b", "x", 1), "+I[x,1]"),
    (NAMED, Row("y", 2), row("a b", "y", 2), "+I[y,2]"),
    (NAMED, Row(b=3, a="z"), row("a b", "z", 3), "+I[z,3]"),
    (UNNAMED, Row.of_kind(RowKind.DELETE, "a", 1), row("f0 f1", "a", 1, kind=RowKind.DELETE), "-D[a,1]"),
    (
        T.ROW([T.ROW([T.INT()]), T.TUPLE([T.INT(), T.STRING()]), T.LIST(T.STRING()), T.BOOLEAN(), T.FLOAT()]),
        Row(Row(1), (1, "a"), ["p", "q"], True, 0.1),
        row("f0 f1 f2 f3 f4", row("f0", 1), (1, "a"), ["p", "q"], True, 0.10000000149011612),
        "+I[Row(f0=1),(1, 'a'),['p', 'q'],True,0.10000000149011612]",
    ),
    (T.LIST(T.ROW([T.INT(), T.STRING()])), [Row(1, "a")], [row("f0 f1", 1, "a")], "[+I[1, a]]"),
    (T.LIST(T.TUPLE([T.INT(), T.STRING()])), [(1, "a")], [(1, "a")], "[(1,a)]"),
    (T.OBJECT_ARRAY(T.ROW([T.INT()])), [Row(1)], [row("f0", 1)], "[+I[1]]"),
    (T.PICKLED_BYTE_ARRAY(), {"a": True}, {"a": True}, "{'a': True}"),
    (T.PICKLED_BYTE_ARRAY(), Row(1, "a"), Row(1, "a"), "<Row(1, 'a')>"),
]

# The same for what PyFlink refuses, loses or prints as an address.
OURS = [
    (T.DOUBLE(), 1e23, 1e23, "1.0E23"),
    (T.CHAR(), "a", "a", "a"),
    (T.BIG_INT(), 10**30, 10**30, "1" + "0" * 30),
    (T.STRING(), None, None, "null"),
    (T.LIST(T.INT()), [1, None], [1, None], "[1, null]"),
    (PAIR, ("a", None), ("a", None), "(a,null)"),
    (PAIR, None, None, "null"),
    (UNNAMED, None, None, "null"),
    (T.LIST(UNNAMED), [Row("a", None)], [row("f0 f1", "a", None)], "[+I[a, null]]"),
    (PAIR, ["a", 1], ("a", 1), "(a,1)"),
    (PAIR, Row("a", 1), ("a", 1), "(a,1)"),
    (T.TUPLE([T.INT(), T.INT()]), Point(1, 2), (1, 2), "(1,2)"),
    (UNNAMED, ("a", 1), row("f0 f1", "a", 1), "+I[a,1]"),
    (UNNAMED, ["a", 1], row("f0 f1", "a", 1), "+I[a,1]"),
    (NAMED, {"b": 1, "a": "x"}, row("a b", "x", 1), "+I[x,1]"),
    (NAMED, {"b": 1}, row("a b", None, 1), "+I[None,1]"),
    (NAMED, Thing(), row("a b", "x", 1), "+I[x,1]"),
    (T.PRIMITIVE_ARRAY(T.BYTE()), bytearray(b"a\xff"), b"a\xff", "[97, -1]"),
    (T.PRIMITIVE_ARRAY(T.INT()), [1, 2], [1, 2], "[1, 2]"),
    (T.BASIC_ARRAY(T.STRING()), ["x", None], ["x", None], "[x, null]"),
    (T.LIST(T.DOUBLE()), [1, None, 2.5], [1.0, None, 2.5], "[1.0, null, 2.5]"),
    (T.MAP(T.DOUBLE(), T.SQL_DATE()), {1: None}, {1.0: None}, "{1.0=null}"),
    (T.ROW([T.DOUBLE()]), row("f0", 1), row("f0", 1.0), "+I[1.0]"),
    (T.STRING(), Color.RED, Color.RED, "red"),
    (T.INT(), Size.L, Size.L, "3"),
    (T.TUPLE([T.PICKLED_BYTE_ARRAY()]), ([1],), ([1],), "([1])"),
]


def apply(info: TypeInformation, value: Any) -> Any:
    check, convert = info.checker(), info.converter()
    assert check is None or check(value) is True, info.explain(value)
    return value if convert is None else convert(value)


@pytest.mark.parametrize(("info", "given", "received", "printed"), PYFLINK + OURS)
def test_what_a_type_makes_of_a_value(info: TypeInformation, given: Any, received: Any, printed: str) -> None:
    got = apply(info, given)
    assert type(got) is type(received)
    assert repr(got) == repr(received)
    assert got == received
    assert info.formatter()(got) == printed
    assert info.explain(given) is None
    assert repr(apply(info, got)) == repr(received), "converting twice changes nothing"


def test_nan_passes() -> None:
    for info in (T.FLOAT(), T.DOUBLE()):
        assert math.isnan(apply(info, math.nan))
        assert info.formatter()(math.nan) == "NaN"


MISFITS = [
    (T.STRING(), 5, "expected STRING, got int 5"),
    (T.STRING(), b"ab", "expected STRING, got bytes b'ab'"),
    (T.BYTE(), 128, "expected BYTE, got int 128, which is outside -128 to 127"),
    (T.SHORT(), 40000, "expected SHORT, got int 40000, which is outside -32768 to 32767"),
    (T.INT(), 2**31, "expected INT, got int 2147483648, which is outside -2147483648 to 2147483647"),
    (T.INT(), "1", "expected INT, got str '1'"),
    (T.INT(), True, "expected INT, got bool True"),
    (T.INT(), 1.0, "expected INT, got float 1.0"),
    (
        T.LONG(),
        2**63,
        "expected LONG, got int 9223372036854775808, which is outside -9223372036854775808 to 9223372036854775807",
    ),
    (T.DOUBLE(), "1", "expected DOUBLE, got str '1'"),
    (T.DOUBLE(), True, "expected DOUBLE, got bool True"),
    (T.BOOLEAN(), 1, "expected BOOLEAN, got int 1"),
    (T.CHAR(), "ab", "expected CHAR, got str 'ab'"),
    (T.BIG_DEC(), Decimal("NaN"), "expected BIG_DEC, got Decimal Decimal('NaN')"),
    (T.BIG_DEC(), math.inf, "expected BIG_DEC, got float inf"),
    (T.SQL_TIMESTAMP(), dt.date(2020, 1, 2), "expected SQL_TIMESTAMP, got date datetime.date(2020, 1, 2)"),
    (T.INSTANT(), 5, "expected INSTANT, got int 5"),
    (T.LIST(T.INT()), (1,), "expected LIST<INT>, got tuple (1,)"),
    (T.LIST(T.INT()), [1, "x"], "element 1 of LIST<INT>: expected INT, got str 'x'"),
    (T.MAP(T.STRING(), T.INT()), {1: 1}, "key 1 of MAP<STRING, INT>: expected STRING, got int 1"),
    (
        T.MAP(T.STRING(), T.INT()),
        {"a": "b"},
        "value under 'a' of MAP<STRING, INT>: expected INT, got str 'b'",
    ),
    (
        T.PRIMITIVE_ARRAY(T.BYTE()),
        [1],
        "expected PRIMITIVE_ARRAY<BYTE>, got list [1]",
    ),
    (PAIR, ("a", "x"), "field 1 of TUPLE<STRING, INT>: expected INT, got str 'x'"),
    (PAIR, "ab", "expected TUPLE<STRING, INT>, got str 'ab'"),
    (PAIR, ("a",), "expected TUPLE<STRING, INT> with 2 fields, got tuple ('a',) with 1"),
    (NAMED, Row("a", "x"), "field 'b' of ROW<a STRING, b INT>: expected INT, got str 'x'"),
    (NAMED, Row(c=1, d=2), "expected ROW<a STRING, b INT>, got Row Row(c=1, d=2)"),
    (NAMED, 5, "expected ROW<a STRING, b INT>, got int 5"),
    (
        T.LIST(PAIR),
        [("a", 1), ("b", None), (1, 1)],
        "element 2 of LIST<TUPLE<STRING, INT>>: field 0 of TUPLE<STRING, INT>: expected STRING, got int 1",
    ),
]


@pytest.mark.parametrize(("info", "value", "text"), MISFITS)
def test_what_does_not_fit_is_explained(info: TypeInformation, value: Any, text: str) -> None:
    check = info.checker()
    assert check is not None
    assert check(value) is False
    assert info.explain(value) == text


LEAVES = [
    T.STRING(),
    T.BYTE(),
    T.INT(),
    T.LONG(),
    T.BIG_INT(),
    T.DOUBLE(),
    T.FLOAT(),
    T.BOOLEAN(),
    T.BIG_DEC(),
    T.SQL_DATE(),
    T.SQL_TIMESTAMP(),
    T.PICKLED_BYTE_ARRAY(),
    T.PRIMITIVE_ARRAY(T.BYTE()),
]
TYPES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        inner.map(T.LIST),
        st.lists(inner, max_size=3).map(T.TUPLE),
        st.lists(inner, max_size=3).map(T.ROW),
        st.tuples(inner, inner).map(lambda pair: T.MAP(*pair)),
    ),
    max_leaves=5,
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-200, 200),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.decimals(),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(lambda values: Row(*values)),
        st.dictionaries(st.one_of(st.integers(), st.text(max_size=2)), inner, max_size=2),
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(TYPES, ANYTHING)
def test_check_and_explanation_agree_and_conversion_settles(info: TypeInformation, value: Any) -> None:
    check, convert, show = info.checker(), info.converter(), info.formatter()
    fits = check is None or check(value)
    assert fits == (info.explain(value) is None)
    if fits:
        once = value if convert is None else convert(value)
        assert info.explain(once) is None
        assert repr(once if convert is None else convert(once)) == repr(once)
        assert isinstance(show(once), str)


def test_types_compare_hash_pickle_and_print() -> None:
    for info in {info for info, *_ in PYFLINK + OURS}:
        back = pickle.loads(pickle.dumps(info))
        assert back == info
        assert hash(back) == hash(info)
        assert str(back) == str(info)
    assert T.LIST(T.INT()) != T.OBJECT_ARRAY(T.INT())
    assert NAMED == UNNAMED, "names do not count, as in Flink"
    assert T.INT() != T.LONG()
    assert str(T.MAP(T.STRING(), NAMED)) == "MAP<STRING, ROW<a STRING, b INT>>"


def test_fields() -> None:
    assert (NAMED.field_index("b"), NAMED.field_index(0), UNNAMED.field_index("f1")) == (1, 0, 1)
    assert PAIR.field_index("f0") == 0
    assert (NAMED.get_field_names(), UNNAMED.get_field_names()) == (["a", "b"], ["f0", "f1"])
    assert NAMED.get_field_types() == [T.STRING(), T.INT()]
    assert (NAMED.get_field_index("b"), NAMED.get_field_index("z")) == (1, -1)
    with pytest.raises(ProgramError, match=r"No field 'z' in ROW<a STRING, b INT>; its fields are \['a', 'b'\]"):
        NAMED.field_index("z")
    with pytest.raises(ProgramError, match=r"No field 2 in TUPLE<STRING, INT>"):
        PAIR.field_index(2)
    with pytest.raises(ProgramError, match="LONG has no fields, so there is no field 0 to pick"):
        T.LONG().field_index(0)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: T.TUPLE([T.STRING]), "Field 0 needs a type such as Types.STRING(), got <function"),
        (lambda: T.ROW_NAMED(["a"], [T.INT(), T.INT()]), "got 1 names ['a'] for 2 types."),
        (lambda: T.ROW_NAMED(["a", "a"], [T.INT(), T.INT()]), "must differ, got ['a', 'a']."),
        (lambda: T.LIST(int), "LIST needs the type of its elements"),
        (lambda: T.MAP(T.INT(), int), "MAP needs the type of its values"),
        (lambda: T.PRIMITIVE_ARRAY(T.STRING()), "PRIMITIVE_ARRAY holds numbers"),
        (lambda: T.BASIC_ARRAY(PAIR), "Use OBJECT_ARRAY or LIST"),
    ],
)
def test_types_refuse_nonsense(build: Any, text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        build()
    assert text in str(caught.value)


def test_fast_types_have_no_converter() -> None:
    for info in (T.STRING(), T.INT(), T.LONG(), T.BOOLEAN(), T.LIST(T.STRING()), T.PICKLED_BYTE_ARRAY()):
        assert info.converter() is None
    value = ("a", 1)
    convert = PAIR.converter()
    assert convert is not None
    assert convert(value) is value, "no copy where none is needed"


def test_local_times_keep_their_microseconds() -> None:
    info = LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME)
    moment = dt.datetime(2020, 1, 2, 3, 4, 5, 123456)
    assert apply(info, moment) == moment
    assert info.formatter()(moment) == "2020-01-02T03:04:05.123456"
