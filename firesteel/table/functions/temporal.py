"""Dates and times: their parts, their units, as text and back."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.functions.binding import FunctionError
from firesteel.table.functions.evaluation import EvaluationContext, folded
from firesteel.table.functions.reading import read_date, read_timestamp
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.functions.temporal_arithmetic import add_months
from firesteel.table.functions.text import maybe_string
from firesteel.table.functions.time_formats import format_time, parse_beginning, parse_time, shortest_unit
from firesteel.table.functions.values import by_value, mapped
from firesteel.table.functions.zones import later_moment, local_to_utc, utc_to_local
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import (
    BigIntType,
    DataType,
    DateType,
    DayTimeIntervalType,
    IntType,
    LocalZonedTimestampType,
    NullType,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)
from firesteel.table.types.derivation import any_nullable, is_text
from firesteel.table.types.time_zones import clock_of, zone_of

__all__: list[str] = []

_DAY = 86_400_000
_EPOCH = datetime.datetime(1970, 1, 1)


def _bigint(arguments: Sequence[Expression]) -> DataType:
    return BigIntType(is_nullable=any_nullable([argument.type for argument in arguments]))


def local(values: Datum, kind: DataType, zone: str) -> Datum:
    """Dates and times of any kind as timestamps without a zone."""
    if isinstance(kind, LocalZonedTimestampType):
        return utc_to_local(values, zone)
    if isinstance(kind, DateType):
        return values.cast(pa.timestamp("ms"))
    if isinstance(kind, TimeType):
        return values.cast(pa.int32()).cast(pa.int64()).cast(pa.timestamp("ms"))
    return values


# Parts.

_PARTS: dict[str, Callable[[Datum], Datum]] = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "WEEK": pc.iso_week,
    "DAY": pc.day,
    "DOY": pc.day_of_year,
    "DOW": lambda values: pc.day_of_week(values, count_from_zero=False, week_start=7),
    "ISODOW": lambda values: pc.day_of_week(values, count_from_zero=False, week_start=1),
    "ISOYEAR": pc.iso_year,
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
    "SECOND": pc.second,
    # As in Flink these are of the second, without its whole number.
    "MILLISECOND": pc.millisecond,
    "MICROSECOND": lambda values: pc.divide(_fraction(values), 1000),
    "NANOSECOND": lambda values: _fraction(values),
    "EPOCH": lambda values: values.cast(pa.timestamp("s"), safe=False).cast(pa.int64()),
    "DECADE": lambda values: pc.divide(pc.year(values), 10),
    "CENTURY": lambda values: pc.divide(pc.add(pc.year(values), 99), 100),
    "MILLENNIUM": lambda values: pc.divide(pc.add(pc.year(values), 999), 1000),
}


def _fraction(values: Datum) -> Datum:
    """The nanoseconds of a second."""
    thousands = pc.add(pc.multiply(pc.millisecond(values), 1000), pc.microsecond(values))
    return pc.add(pc.multiply(thousands, 1000), pc.nanosecond(values))


def _part(unit: str, call: Call, values: Datum, kind: DataType, context: EvaluationContext) -> Datum:
    found = _PARTS[unit](local(values, kind, context.time_zone))
    return found.cast(arrow_type(call.type), safe=False)


def _unit(expression: Expression) -> str:
    assert isinstance(expression, Literal)
    return str(expression.value)


def _extract(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    return _part(_unit(call.args[0]), call, arguments[1], call.args[1].type, context)


def _extracted(arguments: Sequence[Expression]) -> DataType:
    unit = _unit(arguments[0])
    if unit not in _PARTS:
        raise FunctionError(f"EXTRACT knows {', '.join(_PARTS)}, not {unit}.")
    return _bigint(arguments[1:])


register(Function("EXTRACT", Signature(("symbol", "time")), _extracted, _extract, syntax="EXTRACT(unit FROM a)"))
for _name, _of in {
    "YEAR": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "WEEK": "WEEK",
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "DAYOFWEEK": "DOW",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
    "SECOND": "SECOND",
}.items():

    def _named(call: Call, arguments: list[Datum], context: EvaluationContext, unit: str = _of) -> Datum:
        return _part(unit, call, arguments[0], call.args[0].type, context)

    register(Function(_name, Signature(("time",)), _bigint, _named))


# Rounding to units.

_FIXED = {"DAY": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second", "MILLISECOND": "millisecond"}


def _floor(values: Datum, unit: str) -> Datum:
    if unit in _FIXED:
        return pc.floor_temporal(values, unit=_FIXED[unit])
    if unit in ("YEAR", "QUARTER", "MONTH"):
        return pc.floor_temporal(values, unit=unit.lower())
    if unit == "WEEK":
        return pc.floor_temporal(values, unit="week", week_starts_monday=False)
    years = _LONG[unit]
    begin = 0 if unit == "DECADE" else 1
    return mapped(values, lambda moment: _year_floor(moment, years, begin), values.type)


_LONG = {"DECADE": 10, "CENTURY": 100, "MILLENNIUM": 1000}


def _year_floor(moment: datetime.datetime, years: int, begin: int) -> datetime.datetime:
    return datetime.datetime((moment.year - begin) // years * years + begin, 1, 1)


def _ceil(values: Datum, unit: str) -> Datum:
    """The next beginning of a unit, or the moment itself where it is one: Arrow's own goes on from January 1st."""
    begin = _floor(values, unit)
    if unit in _LONG:
        years = _LONG[unit]
        after = mapped(begin, lambda moment: moment.replace(year=moment.year + years), values.type)
    elif unit in _MONTHS:
        step = _MONTHS[unit]
        after = mapped(begin, lambda moment: add_months(moment, step), values.type)
    else:
        after = pc.add(begin, pa.scalar(_STEPS[unit], pa.duration("ms")).cast(pa.duration(values.type.unit)))
    return pc.if_else(pc.equal(begin, values), begin, after)


def _rounded(round_to: Callable[[Datum, str], Datum]) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        kind = call.args[0].type
        rounded = round_to(local(arguments[0], kind, context.time_zone), _unit(call.args[1]))
        if isinstance(kind, LocalZonedTimestampType):
            return local_to_utc(rounded, context.time_zone)
        return rounded.cast(arrow_type(call.type), safe=False)

    return kernel


_TO_UNIT = Signature(("time", "symbol"))


def _same(arguments: Sequence[Expression]) -> DataType:
    return arguments[0].type


register(Function("FLOOR TO", _TO_UNIT, _same, _rounded(_floor), syntax="FLOOR(a TO unit)"))
register(Function("CEIL TO", _TO_UNIT, _same, _rounded(_ceil), syntax="CEIL(a TO unit)"))


# Differences.

_STEPS = {"WEEK": 7 * _DAY, "DAY": _DAY, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000, "MILLISECOND": 1}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _int_of_times(arguments: Sequence[Expression]) -> DataType:
    unit = _unit(arguments[0])
    if unit not in _STEPS and unit not in _MONTHS:
        raise FunctionError(f"TIMESTAMPDIFF knows {', '.join([*_MONTHS, *_STEPS])}, not {unit}.")
    return IntType(is_nullable=any_nullable([argument.type for argument in arguments]))


def _difference(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    unit = _unit(call.args[0])
    kinds = [argument.type for argument in call.args[1:]]
    # Between two moments hours pass that no clock on a wall shows, where clocks are set.
    zone = "UTC" if all(isinstance(kind, LocalZonedTimestampType) for kind in kinds) else context.time_zone
    first, second = (
        local(values, kind, zone).cast(pa.timestamp("ms"), safe=False)
        for values, kind in zip(arguments[1:], kinds, strict=True)
    )
    if unit in _STEPS:
        millis = pc.subtract(second.cast(pa.int64()), first.cast(pa.int64()))
        return pc.divide(millis, _STEPS[unit]).cast(pa.int32(), safe=False)
    step = _MONTHS[unit]
    return by_value(lambda a, b: _months_between(a, b, step))(call, [first, second], context)


def _months_between(first: datetime.datetime, second: datetime.datetime, step: int) -> int:
    """Whole months: the last one counts when its day and time have come."""
    if second < first:
        return -_months_between(second, first, step)
    months = (second.year - first.year) * 12 + second.month - first.month
    if add_months(first, months) > second:
        months -= 1
    return int(months // step)


register(Function("TIMESTAMPDIFF", Signature(("symbol", "time", "time")), _int_of_times, _difference, syntax=None))


def _period_type(arguments: Sequence[Expression]) -> DataType:
    nullable = any_nullable([argument.type for argument in arguments[1:]])
    if _unit(arguments[0]) in _MONTHS:
        return YearMonthIntervalType("MONTH", is_nullable=nullable)
    return DayTimeIntervalType("SECOND", is_nullable=nullable)


def _period(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    """The time from the second moment to the first."""
    first, second = (
        local(values, argument.type, context.time_zone).cast(pa.timestamp("ms"), safe=False)
        for values, argument in zip(arguments[1:], call.args[1:], strict=True)
    )
    if _unit(call.args[0]) in _MONTHS:
        return by_value(lambda a, b: _months_between(b, a, 1))(call, [first, second], context)
    return pc.subtract(first, second).cast(arrow_type(call.type), safe=False)


_BETWEEN = Signature(("symbol", "time", "time"))
register(Function("TIME DIFFERENCE", _BETWEEN, _period_type, _period, syntax="(a - b) unit"))


def _added_type(arguments: Sequence[Expression]) -> DataType:
    unit, kind = _unit(arguments[0]), arguments[2].type
    nullable = any_nullable([argument.type for argument in arguments])
    if isinstance(kind, DateType) and unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        return TimestampType(6, is_nullable=nullable)
    return kind.with_nullability(nullable)


def _added(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    unit, kind = _unit(call.args[0]), arrow_type(call.type)
    number, values = arguments[1], arguments[2]
    if isinstance(call.type, TimestampType) and isinstance(call.args[2].type, DateType):
        values = values.cast(pa.timestamp("ms")).cast(kind)
    if unit in _MONTHS:
        step = _MONTHS[unit]
        return by_value(lambda value, months: add_months(value, months * step))(call, [values, number], context)
    millis = pc.multiply(number.cast(pa.int64()), _STEPS[unit])
    if pa.types.is_date(values.type):
        return pc.add(values.cast(pa.timestamp("ms")), millis.cast(pa.duration("ms"))).cast(kind, safe=False)
    return pc.add(values, millis.cast(pa.duration("ms")).cast(pa.duration(kind.unit)))


register(Function("TIMESTAMPADD", Signature(("symbol", "integer", "time")), _added_type, _added))


# Text.


def _timestamp_of_text(text: str) -> datetime.datetime | None:
    """Text that DATE_FORMAT takes has the date and the time."""
    return _to_timestamp(text) if " " in text.strip() else None


def _formatted(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    kind = call.args[0].type
    if is_text(kind):
        moments = mapped(arguments[0], _timestamp_of_text, pa.timestamp("ms"))
    else:
        moments = local(arguments[0], kind, context.time_zone)
    if pa.types.is_timestamp(moments.type) and moments.type.unit == "ns":
        moments = moments.cast(pa.timestamp("us"), safe=False)
    if not isinstance(moments, pa.Scalar) and isinstance(arguments[1], pa.Scalar) and arguments[1].is_valid:
        # Moments that are written alike are one, so that few are different.
        unit = shortest_unit(arguments[1].as_py())
        if unit is not None:
            moments = pc.floor_temporal(moments, unit=unit)
    return by_value(format_time)(call, [moments, arguments[1]], context)


register(Function("DATE_FORMAT", Signature(("date or text", "string")), maybe_string, _formatted))


def _to_date(text: str, pattern: str | None = None) -> datetime.date | None:
    if pattern is None:
        return read_date(text)
    found = parse_beginning(text, pattern)
    return found.date() if found is not None else None


register(Function("TO_DATE", Signature(("string", "string"), optional=1), lambda a: DateType(), by_value(_to_date)))


def _to_timestamp(text: str, pattern: str | None = None) -> datetime.datetime | None:
    if pattern is not None:
        found = parse_time(text, pattern)
        # A text that is not written like the pattern may be a timestamp as SQL writes it.
        if found is not None or not _STANDARD.fullmatch(text):
            return found
    elif not _WRITTEN.fullmatch(text):
        return None
    nanos = read_timestamp(text, 3)
    return _EPOCH + datetime.timedelta(milliseconds=nanos // 1_000_000) if nanos is not None else None


_STANDARD = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}( \d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,9})?)?\s*")
# A date alone, or with hours, minutes and seconds.
_WRITTEN = re.compile(r"\s*\d{1,4}-\d{1,2}-\d{1,2}(\s+\d{1,2}:\d{1,2}:\d{1,2}(\.\d*)?)?\s*")


register(
    Function(
        "TO_TIMESTAMP",
        Signature(("string", "string"), optional=1),
        lambda arguments: TimestampType(3),
        by_value(_to_timestamp),
    )
)


def _digits(arguments: Sequence[Expression]) -> int:
    """How many digits behind the second a number has, or a text by its pattern; 3 is the default."""
    if len(arguments) < 2:
        return 3
    digits = folded(arguments[1])
    if is_text(arguments[0].type) or isinstance(arguments[0].type, NullType):
        pattern = digits.value if isinstance(digits, Literal) and isinstance(digits.value, str) else ""
        return min(pattern.count("S"), 9)
    if isinstance(digits, Literal) and digits.value is None:
        return 3
    if len(arguments) > 2 or not isinstance(digits, Literal) or not isinstance(digits.value, int):
        raise FunctionError("TO_TIMESTAMP_LTZ of a number takes one more argument: its digits, from 0 to 9.")
    if not 0 <= digits.value <= 9:
        raise FunctionError(f"TO_TIMESTAMP_LTZ takes 0 to 9 digits, got {digits.value}.")
    return digits.value


_LAST_MILLI = 9.2e18 / 10**6
"""A moment has nanoseconds, where its type has more than three digits."""


def _to_moment(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    if is_text(call.args[0].type):
        return _read_moment(call, arguments, context)
    digits = _digits(call.args)
    kind = arrow_type(call.type)
    if any(isinstance(each, pa.Scalar) and not each.is_valid for each in arguments):
        return pa.scalar(None, kind)
    if pa.types.is_floating(arguments[0].type) or pa.types.is_decimal(arguments[0].type):
        millis = pc.multiply(arguments[0].cast(pa.float64()), 10.0 ** (3 - digits))
        # What is no moment is NULL, as in Flink.
        known = pc.if_else(pc.less(pc.abs(millis), _LAST_MILLI), millis, pa.scalar(None, pa.float64()))
        return pc.floor(known).cast(pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(kind)
    values, shift = arguments[0].cast(pa.int64()), 9 - digits if digits > 3 else 3 - digits
    return pc.multiply(values, 10**shift).cast(pa.timestamp("ns" if digits > 3 else "ms", "UTC")).cast(kind)


def _read_moment(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    def one(text: str, pattern: str | None = None, zone: str = "UTC") -> datetime.datetime | None:
        found = _to_timestamp(text, pattern)
        return None if found is None else found.replace(tzinfo=zone_of(zone)).astimezone(datetime.UTC)

    return by_value(one)(call, arguments, context)


register(
    Function(
        "TO_TIMESTAMP_LTZ",
        Signature(("number or text", "any", "string"), optional=2),
        lambda arguments: LocalZonedTimestampType(max(3, _digits(arguments))),
        _to_moment,
    )
)


def _from_unix(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    zone = clock_of(context.time_zone)

    def one(seconds: int, pattern: str = "yyyy-MM-dd HH:mm:ss") -> str:
        moment = datetime.datetime.fromtimestamp(seconds, zone).replace(tzinfo=None)
        return format_time(moment, pattern)

    return by_value(one)(call, arguments, context)


register(Function("FROM_UNIXTIME", Signature(("numeric", "string"), optional=1), maybe_string, _from_unix))


def _unix(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    if not arguments:
        return pa.scalar(int(context.now), pa.int64())
    zone = clock_of(context.time_zone)

    def one(text: str, pattern: str = "yyyy-MM-dd HH:mm:ss") -> int:
        moment = parse_beginning(text, pattern)
        return -(2**63) if moment is None else int(later_moment(moment, zone).timestamp())

    return by_value(one)(call, arguments, context)


register(
    Function(
        "UNIX_TIMESTAMP",
        Signature(("string", "string"), optional=2),
        _bigint,
        _unix,
        deterministic=False,
    )
)


def _converted(text: str, source: str, target: str) -> str | None:
    moment = parse_beginning(text, "yyyy-MM-dd HH:mm:ss")
    if moment is None:
        return None
    there = later_moment(moment, zone_of(source)).astimezone(zone_of(target))
    return format_time(there.replace(tzinfo=None), "yyyy-MM-dd HH:mm:ss")


register(Function("CONVERT_TZ", Signature(("string", "string", "string")), maybe_string, by_value(_converted)))


# Now.


def _now(kind: DataType, of: Callable[[datetime.datetime], Any]) -> Callable[..., Datum]:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        moment = datetime.datetime.fromtimestamp(context.now, clock_of(context.time_zone))
        return pa.scalar(of(moment.replace(microsecond=moment.microsecond // 1000 * 1000)), arrow_type(kind))

    return kernel


def _plain(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=None)


for _name, _kind, _of_now in (
    ("CURRENT_DATE", DateType(is_nullable=False), datetime.datetime.date),
    ("CURRENT_TIME", TimeType(0, is_nullable=False), lambda moment: moment.time().replace(microsecond=0)),
    ("LOCALTIME", TimeType(0, is_nullable=False), lambda moment: moment.time().replace(microsecond=0)),
    ("LOCALTIMESTAMP", TimestampType(3, is_nullable=False), _plain),
    ("CURRENT_TIMESTAMP", LocalZonedTimestampType(3, is_nullable=False), lambda moment: moment),
    ("NOW", LocalZonedTimestampType(3, is_nullable=False), lambda moment: moment),
    ("CURRENT_ROW_TIMESTAMP", LocalZonedTimestampType(3, is_nullable=False), lambda moment: moment),
    ("PROCTIME", LocalZonedTimestampType(3, is_nullable=False), lambda moment: moment),
):

    def _always(arguments: Sequence[Expression], kind: DataType = _kind) -> DataType:
        return kind

    register(Function(_name, Signature(()), _always, _now(_kind, _of_now), deterministic=False))
