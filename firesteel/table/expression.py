"""Expressions of the Table API. They hold what SQL would say, and are resolved by the same rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from firesteel.errors import ProgramError, short_repr
from firesteel.table.expression_methods.calls import (
    NOWHERE,
    TimeIntervalUnit,
    TimePointUnit,
    call_of,
    method_of,
    node_of,
    property_of,
)
from firesteel.table.expression_methods.collection_methods import CollectionMethods
from firesteel.table.expression_methods.json_methods import (
    JsonExistsOnError,
    JsonMethods,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
)
from firesteel.table.expression_methods.number_methods import NumberMethods
from firesteel.table.expression_methods.text_methods import TextMethods
from firesteel.table.expression_methods.time_methods import TimeMethods
from firesteel.table.expression_text import expression_text
from firesteel.table.sql.syntax import (
    Between,
    Binary,
    Case,
    Cast,
    Constant,
    FunctionCall,
    InList,
    InQuery,
    IsTest,
    Like,
    Name,
    Node,
    OrderItem,
    Over,
    PlannedQuery,
    Query,
    SelectItem,
    Star,
    Unary,
)
from firesteel.table.types.data_types import DataType

__all__ = [
    "NOWHERE",
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "RowInterval",
    "TimeIntervalUnit",
    "TimePointUnit",
    "called",
    "node_of",
]


@dataclass(frozen=True)
class RowInterval(Node):
    """``row_interval(n)``: so many rows."""

    count: Constant
    rows: int


def called(name: str, *args: Any, distinct: bool = False, clauses: tuple[Any, ...] = ()) -> Expression:
    """A call of a function."""
    return Expression(call_of(name, *args, distinct=distinct, clauses=clauses))


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


class Expression(NumberMethods, TextMethods, TimeMethods, CollectionMethods, JsonMethods):
    """A value that is computed of the columns of a table.

    >>> from firesteel.table.expressions import col
    >>> (col("a") + 1).alias("next")
    <Expression (a + 1) AS next>
    """

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
        """True where the condition is FALSE or NULL, as in PyFlink; ``not_`` leaves NULL as it is."""
        return Expression(IsTest(self._node, "TRUE", True, span=NOWHERE))

    def __abs__(self) -> Expression:
        return called("ABS", self)

    def __neg__(self) -> Expression:
        return Expression(Unary("-", self._node, span=NOWHERE))

    def __pos__(self) -> Expression:
        return self

    def __pow__(self, power: Any) -> Expression:
        return called("POWER", self, power)

    def __rpow__(self, base: Any) -> Expression:
        return called("POWER", base, self)

    def __str__(self) -> str:
        """As PyFlink shows it: ``plus(a, 1)``."""
        return expression_text(self._node)

    def __repr__(self) -> str:
        return f"<Expression {_shown(self._node)}>"

    # Names, types, order.

    def alias(self, name: str, *extra_names: str) -> Expression:
        """Another name for the result; several names, for the columns of a table function."""
        return Expression(SelectItem(self._node, name, extra_names, span=NOWHERE))

    def cast(self, data_type: DataType) -> Expression:
        """As a value of another type."""
        return Expression(Cast(self._node, _type(data_type), False, span=NOWHERE))

    def try_cast(self, data_type: DataType) -> Expression:
        """As a value of another type; NULL if that has no place for it."""
        return Expression(Cast(self._node, _type(data_type), True, span=NOWHERE))

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
        """One of these values, or of those of a table with one column."""
        plan = getattr(first_element_or_table, "_plan", None)
        if plan is not None:
            query = Query(PlannedQuery(plan, span=NOWHERE), span=NOWHERE)
            return Expression(InQuery(self._node, query, False, span=NOWHERE))
        items = tuple(node_of(each) for each in (first_element_or_table, *remaining_elements))
        return Expression(InList(self._node, items, False, span=NOWHERE))

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """One of two values, depending on this condition."""
        branch = (self._node, node_of(if_true))
        return Expression(Case(None, (branch,), node_of(if_false), span=NOWHERE))

    def if_null(self, null_replacement: Any) -> Expression:
        """This value, or another one if it is NULL."""
        return called("IFNULL", self, null_replacement)

    def like(self, pattern: Any = None, escape: Any = None) -> Expression:
        """Whether the text is like a pattern with % and _."""
        mark = node_of(escape) if escape is not None else None
        return Expression(Like("LIKE", self._node, node_of(pattern), mark, False, span=NOWHERE))

    def similar(self, pattern: Any = None) -> Expression:
        """Whether the text matches a regular expression of SQL."""
        return Expression(Like("SIMILAR TO", self._node, node_of(pattern), None, False, span=NOWHERE))

    # Aggregates.

    sum = property_of("SUM")
    sum0 = property_of("SUM0")
    min = property_of("MIN")
    max = property_of("MAX")
    count = property_of("COUNT")
    avg = property_of("AVG")
    first_value = property_of("FIRST_VALUE")
    last_value = property_of("LAST_VALUE")
    stddev_pop = property_of("STDDEV_POP")
    stddev_samp = property_of("STDDEV_SAMP")
    var_pop = property_of("VAR_POP")
    var_samp = property_of("VAR_SAMP")
    collect = property_of("COLLECT")
    array_agg = property_of("ARRAY_AGG")
    list_agg = method_of("LISTAGG", "separator=")
    percentile = method_of("PERCENTILE", "percentage", "frequency=")

    @property
    def distinct(self) -> Expression:
        """Of an aggregate: of different values only."""
        if not isinstance(self._node, FunctionCall):
            raise ProgramError("distinct belongs to an aggregate: col('a').count.distinct.")
        return Expression(replace(self._node, distinct=True))

    def over(self, alias: Expression) -> Expression:
        """Of an aggregate: over the rows of a window that ``over_window`` was given."""
        node, name = self._node, node_of(alias)
        if not isinstance(node, FunctionCall) or not isinstance(name, Name):
            raise ProgramError(
                "over() belongs to an aggregate, and takes the name of a window: col('a').sum.over(col('w'))."
            )
        window = Over(name.parts[-1], (), (), None, span=NOWHERE)
        return Expression(replace(node, over=window))

    # Windows.

    start = property_of("WINDOW_START")
    end = property_of("WINDOW_END")
    rowtime = property_of("WINDOW_ROWTIME")
    proctime = property_of("WINDOW_PROCTIME")


def _type(given: Any) -> DataType:
    if isinstance(given, DataType):
        return given
    raise ProgramError(f"cast() takes a type such as DataTypes.INT(), got {short_repr(given, 60)}.")


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
