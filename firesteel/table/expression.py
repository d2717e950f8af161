"""Expressions of the Table API. They hold what SQL would say, and are resolved by the same rules."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable
from typing import Any, cast

from firesteel.errors import ProgramError, short_repr
from firesteel.table.logical.literals import python_literal
from firesteel.table.sql.source import Span
from firesteel.table.sql.syntax import (
    Between,
    Binary,
    Case,
    Cast,
    Constant,
    FieldAccess,
    FunctionCall,
    InList,
    IsTest,
    ItemAccess,
    Like,
    Name,
    Node,
    OrderItem,
    SelectItem,
    Star,
    Symbol,
    Unary,
)
from firesteel.table.types.data_types import DataType, DayTimeIntervalType, YearMonthIntervalType

__all__ = ["Expression", "TimeIntervalUnit", "called", "node_of"]

NOWHERE = Span(0, 0)


class TimeIntervalUnit(enum.Enum):
    """Units of time."""

    YEAR = "YEAR"
    YEAR_TO_MONTH = "YEAR TO MONTH"
    QUARTER = "QUARTER"
    MONTH = "MONTH"
    WEEK = "WEEK"
    DAY = "DAY"
    DAY_TO_HOUR = "DAY TO HOUR"
    DAY_TO_MINUTE = "DAY TO MINUTE"
    DAY_TO_SECOND = "DAY TO SECOND"
    HOUR = "HOUR"
    SECOND = "SECOND"
    HOUR_TO_MINUTE = "HOUR TO MINUTE"
    HOUR_TO_SECOND = "HOUR TO SECOND"
    MINUTE = "MINUTE"
    MINUTE_TO_SECOND = "MINUTE TO SECOND"


def node_of(value: Any) -> Node:
    """What an expression holds; a Python value is a constant."""
    if isinstance(value, Expression):
        return value._node
    if isinstance(value, TimeIntervalUnit):
        return Symbol(value.value, span=NOWHERE)
    try:
        return Constant("python", python_literal(value), span=NOWHERE)
    except ValueError:
        raise ProgramError(f"{short_repr(value, 60)} is neither an expression nor a constant.") from None


def called(name: str, *args: Any, distinct: bool = False) -> Expression:
    """A call of a function."""
    nodes = tuple(node_of(argument) for argument in args)
    return Expression(FunctionCall(Name((name,), span=NOWHERE), nodes, distinct, span=NOWHERE))


def _given(*args: Any) -> tuple[Any, ...]:
    """Arguments without those at the end that were not given."""
    kept = list(args)
    while kept and kept[-1] is None:
        kept.pop()
    return tuple(kept)


def _property(name: str) -> Expression:
    """``column.name`` without parentheses."""
    return cast("Expression", property(lambda self: called(name, self), doc=f"``{name}``."))


def _method(name: str) -> Callable[..., Expression]:
    """``column.name(...)``."""

    def method(self: Expression, *args: Any) -> Expression:
        return called(name, self, *_given(*args))

    method.__doc__ = f"``{name}``."
    return method


def _operator(sign: str, swapped: bool = False) -> Callable[[Expression, Any], Expression]:
    def method(self: Expression, other: Any) -> Expression:
        left, right = node_of(self), node_of(other)
        if swapped:
            left, right = right, left
        return Expression(Binary(sign, left, right, span=NOWHERE))

    return method


def _test(what: str, negated: bool = False) -> Expression:
    return cast(
        "Expression",
        property(
            lambda self: Expression(IsTest(node_of(self), what, negated, span=NOWHERE)),
            doc=f"``IS {'NOT ' if negated else ''}{what}``.",
        ),
    )


def _span(unit: str, factor: int, months: bool = False) -> Expression:
    """``lit(3).minutes``."""

    def make(self: Expression) -> Expression:
        node = self._node
        value = node.value.value if isinstance(node, Constant) and node.kind == "python" else None
        if not isinstance(value, int):
            raise ProgramError(f"lit(n).{unit} takes a whole number.")
        kind: DataType
        if months:
            kind = YearMonthIntervalType(is_nullable=False)
            return Expression(Constant("python", python_literal(value * factor, kind), span=NOWHERE))
        kind = DayTimeIntervalType(is_nullable=False)
        span = datetime.timedelta(milliseconds=value * factor)
        return Expression(Constant("python", python_literal(span, kind), span=NOWHERE))

    return cast("Expression", property(make, doc=f"An interval of that many {unit}."))


class Expression:
    """A value that is computed of the columns of a table.

    >>> from firesteel.table.expressions import col
    >>> (col("a") + 1).alias("next")
    <Expression (a + 1) AS next>
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    # Operators.

    __add__ = _operator("+")
    __radd__ = _operator("+", swapped=True)
    __sub__ = _operator("-")
    __rsub__ = _operator("-", swapped=True)
    __mul__ = _operator("*")
    __rmul__ = _operator("*", swapped=True)
    __truediv__ = _operator("/")
    __rtruediv__ = _operator("/", swapped=True)
    __mod__ = _operator("%")
    __rmod__ = _operator("%", swapped=True)
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    __and__ = _operator("AND")
    __rand__ = _operator("AND", swapped=True)
    __or__ = _operator("OR")
    __ror__ = _operator("OR", swapped=True)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Expression(Binary("=", node_of(self), node_of(other), span=NOWHERE))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Expression(Binary("<>", node_of(self), node_of(other), span=NOWHERE))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise ProgramError("An expression has no truth value: write & for and, | for or, ~ for not.")

    def __invert__(self) -> Expression:
        return Expression(Unary("NOT", self._node, span=NOWHERE))

    def __neg__(self) -> Expression:
        return Expression(Unary("-", self._node, span=NOWHERE))

    def __pos__(self) -> Expression:
        return self

    def __pow__(self, power: Any) -> Expression:
        return called("POWER", self, power)

    def __repr__(self) -> str:
        return f"<Expression {_shown(self._node)}>"

    # Names, types, order.

    def alias(self, name: str, *extra_names: str) -> Expression:
        """Another name for the result."""
        if extra_names:
            raise ProgramError("Not supported yet: alias() with several names.")
        return Expression(SelectItem(self._node, name, span=NOWHERE))

    def cast(self, data_type: DataType) -> Expression:
        """As a value of another type."""
        return Expression(Cast(self._node, data_type, False, span=NOWHERE))

    def try_cast(self, data_type: DataType) -> Expression:
        """As a value of another type; NULL if that has no place for it."""
        return Expression(Cast(self._node, data_type, True, span=NOWHERE))

    @property
    def asc(self) -> Expression:
        """In ascending order."""
        return Expression(OrderItem(self._node, False, None, span=NOWHERE))

    @property
    def desc(self) -> Expression:
        """In descending order."""
        return Expression(OrderItem(self._node, True, None, span=NOWHERE))

    # Conditions.

    is_null = _test("NULL")
    is_not_null = _test("NULL", negated=True)
    is_true = _test("TRUE")
    is_false = _test("FALSE")
    is_not_true = _test("TRUE", negated=True)
    is_not_false = _test("FALSE", negated=True)

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Between two values, both of them included."""
        return Expression(Between(self._node, node_of(lower_bound), node_of(upper_bound), False, False, span=NOWHERE))

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Not between two values."""
        return Expression(Between(self._node, node_of(lower_bound), node_of(upper_bound), True, False, span=NOWHERE))

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression:
        """One of these values."""
        items = tuple(node_of(each) for each in (first_element_or_table, *remaining_elements))
        return Expression(InList(self._node, items, False, span=NOWHERE))

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """One of two values, depending on this condition."""
        branch = (self._node, node_of(if_true))
        return Expression(Case(None, (branch,), node_of(if_false), span=NOWHERE))

    def if_null(self, null_replacement: Any) -> Expression:
        """This value, or another one if it is NULL."""
        return called("IFNULL", self, null_replacement)

    def like(self, pattern: Any, escape: Any = None) -> Expression:
        """Whether the text is like a pattern with % and _."""
        mark = node_of(escape) if escape is not None else None
        return Expression(Like("LIKE", self._node, node_of(pattern), mark, False, span=NOWHERE))

    def similar(self, pattern: Any) -> Expression:
        """Whether the text matches a regular expression of SQL."""
        return Expression(Like("SIMILAR TO", self._node, node_of(pattern), None, False, span=NOWHERE))

    # Aggregates.

    sum = _property("SUM")
    sum0 = _property("SUM0")
    min = _property("MIN")
    max = _property("MAX")
    count = _property("COUNT")
    avg = _property("AVG")
    first_value = _property("FIRST_VALUE")
    last_value = _property("LAST_VALUE")
    stddev_pop = _property("STDDEV_POP")
    stddev_samp = _property("STDDEV_SAMP")
    var_pop = _property("VAR_POP")
    var_samp = _property("VAR_SAMP")
    collect = _property("COLLECT")
    array_agg = _property("ARRAY_AGG")
    list_agg = _method("LISTAGG")

    @property
    def distinct(self) -> Expression:
        """Of an aggregate: of different values only."""
        if not isinstance(self._node, FunctionCall):
            raise ProgramError("distinct belongs to an aggregate: col('a').count.distinct.")
        return Expression(FunctionCall(self._node.name, self._node.args, True, span=NOWHERE))

    # Numbers.

    exp = _property("EXP")
    log10 = _property("LOG10")
    log2 = _property("LOG2")
    ln = _property("LN")
    cosh = _property("COSH")
    sinh = _property("SINH")
    tanh = _property("TANH")
    sin = _property("SIN")
    cos = _property("COS")
    tan = _property("TAN")
    cot = _property("COT")
    asin = _property("ASIN")
    acos = _property("ACOS")
    atan = _property("ATAN")
    degrees = _property("DEGREES")
    radians = _property("RADIANS")
    sqrt = _property("SQRT")
    abs = _property("ABS")
    sign = _property("SIGN")
    bin = _property("BIN")
    hex = _property("HEX")
    unhex = _property("UNHEX")
    round = _method("ROUND")
    truncate = _method("TRUNCATE")
    power = _method("POWER")
    mod = _method("%")

    def log(self, base: Any = None) -> Expression:
        """The logarithm: natural, or to a base."""
        return called("LN", self) if base is None else called("LOG", base, self)

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """The largest whole number, or the begin of the unit of time, that is not greater."""
        return called("FLOOR", self, *_given(time_interval_unit))

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression:
        """The least whole number, or begin of a unit of time, that is not less."""
        return called("CEIL", self, *_given(time_interval_unit))

    # Text.

    char_length = _property("CHAR_LENGTH")
    upper_case = _property("UPPER")
    lower_case = _property("LOWER")
    init_cap = _property("INITCAP")
    ascii = _property("ASCII")
    chr = _property("CHR")
    reverse = _property("REVERSE")
    from_base64 = _property("FROM_BASE64")
    to_base64 = _property("TO_BASE64")
    url_encode = _property("URL_ENCODE")
    url_decode = _property("URL_DECODE")
    md5 = _property("MD5")
    sha1 = _property("SHA1")
    sha224 = _property("SHA224")
    sha256 = _property("SHA256")
    sha384 = _property("SHA384")
    sha512 = _property("SHA512")
    sha2 = _method("SHA2")
    substring = _method("SUBSTRING")
    substr = _method("SUBSTRING")
    replace = _method("REPLACE")
    translate = _method("TRANSLATE")
    lpad = _method("LPAD")
    rpad = _method("RPAD")
    ltrim = _method("LTRIM")
    rtrim = _method("RTRIM")
    btrim = _method("BTRIM")
    repeat = _method("REPEAT")
    left = _method("LEFT")
    right = _method("RIGHT")
    instr = _method("INSTR")
    locate = _method("LOCATE")
    overlay = _method("OVERLAY")
    position = _method("POSITION")
    starts_with = _method("STARTSWITH")
    ends_with = _method("ENDSWITH")
    regexp = _method("REGEXP")
    regexp_count = _method("REGEXP_COUNT")
    regexp_replace = _method("REGEXP_REPLACE")
    regexp_extract = _method("REGEXP_EXTRACT")
    regexp_instr = _method("REGEXP_INSTR")
    regexp_substr = _method("REGEXP_SUBSTR")
    split_index = _method("SPLIT_INDEX")
    split = _method("SPLIT")
    str_to_map = _method("STR_TO_MAP")
    encode = _method("ENCODE")
    decode = _method("DECODE")
    elt = _method("ELT")

    def concat(self, other: Any) -> Expression:
        """Two texts, one behind the other."""
        return called("CONCAT", self, other)

    def trim(self, character: Any = None) -> Expression:
        """Without blanks, or another character, on both sides."""
        return self._trimmed("BOTH", character)

    def trim_leading(self, character: Any = None) -> Expression:
        """Without blanks, or another character, in front."""
        return self._trimmed("LEADING", character)

    def trim_trailing(self, character: Any = None) -> Expression:
        """Without blanks, or another character, at the end."""
        return self._trimmed("TRAILING", character)

    def _trimmed(self, side: str, character: Any) -> Expression:
        mark = Expression(Symbol(side, span=NOWHERE))
        return called("TRIM", mark, " " if character is None else character, self)

    # Times.

    to_date = _property("TO_DATE")
    to_timestamp = _property("TO_TIMESTAMP")
    year = years = _span("years", 12, months=True)
    quarter = quarters = _span("quarters", 3, months=True)
    month = months = _span("months", 1, months=True)
    week = weeks = _span("weeks", 604_800_000)
    day = days = _span("days", 86_400_000)
    hour = hours = _span("hours", 3_600_000)
    minute = minutes = _span("minutes", 60_000)
    second = seconds = _span("seconds", 1000)
    milli = millis = _span("milliseconds", 1)

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression:
        """A part of a date or time."""
        return called("EXTRACT", time_interval_unit, self)

    # Collections and rows.

    cardinality = _property("CARDINALITY")
    element = _property("ELEMENT")
    map_keys = _property("MAP_KEYS")
    map_values = _property("MAP_VALUES")
    array_distinct = _property("ARRAY_DISTINCT")
    array_reverse = _property("ARRAY_REVERSE")
    array_max = _property("ARRAY_MAX")
    array_min = _property("ARRAY_MIN")
    array_contains = _method("ARRAY_CONTAINS")
    array_position = _method("ARRAY_POSITION")
    array_append = _method("ARRAY_APPEND")
    array_prepend = _method("ARRAY_PREPEND")
    array_remove = _method("ARRAY_REMOVE")
    array_concat = _method("ARRAY_CONCAT")
    array_join = _method("ARRAY_JOIN")

    def at(self, index: Any) -> Expression:
        """An element of an array, from one on, or of a map."""
        return Expression(ItemAccess(self._node, node_of(index), span=NOWHERE))

    def get(self, name_or_index: str | int) -> Expression:
        """A field of a row."""
        if isinstance(name_or_index, int):
            raise ProgramError("Not supported yet: get() with a position. Use the field's name.")
        return Expression(FieldAccess(self._node, name_or_index, span=NOWHERE))


def _shown(node: Node) -> str:
    if isinstance(node, SelectItem):
        return f"{_shown(node.expression)} AS {node.alias}"
    if isinstance(node, Binary):
        return f"({_shown(node.left)} {node.operator} {_shown(node.right)})"
    if isinstance(node, FunctionCall):
        return f"{node.name}({', '.join(map(_shown, node.args))})"
    if isinstance(node, Constant):
        return str(node.value)
    if isinstance(node, Star):
        return "*"
    return str(node) if isinstance(node, Name) else type(node).__name__
