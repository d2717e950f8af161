"""Three-valued logic, tests for NULL, and choices."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.errors import ProgramError
from firesteel.table.functions.comparison import certain, nested_equality, truth
from firesteel.table.functions.evaluation import EvaluationContext, as_array
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.logical.expressions import Call, Expression, Literal
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import DataType, NullType
from firesteel.table.types.derivation import any_nullable, common_type

__all__: list[str] = []


def _all_of(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    result = _boolean(arguments[0])
    for argument in arguments[1:]:
        result = pc.and_kleene(result, _boolean(argument))
    return result


def _any_of(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    result = _boolean(arguments[0])
    for argument in arguments[1:]:
        result = pc.or_kleene(result, _boolean(argument))
    return result


def _boolean(values: Datum) -> Datum:
    return values.cast(pa.bool_()) if pa.types.is_null(values.type) else values


def _is(wanted: bool | None, negated: bool) -> object:
    def kernel(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
        values = _boolean(arguments[0])
        found = pc.is_null(values) if wanted is None else pc.fill_null(pc.equal(values, pa.scalar(wanted)), False)
        return pc.invert(found) if negated else found

    return kernel


def _is_null(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    return pc.is_null(arguments[0])


def _is_not_null(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    return pc.is_valid(arguments[0])


def _not(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    return pc.invert(_boolean(arguments[0]))


_MANY = Signature(("boolean", "boolean"), repeated=True)
register(Function("AND", _MANY, truth, _all_of, syntax="a AND b"))
register(Function("OR", _MANY, truth, _any_of, syntax="a OR b"))
register(Function("NOT", Signature(("boolean",)), truth, _not, syntax="NOT a"))
register(Function("IS NULL", Signature(("any",)), certain, _is_null, syntax="a IS NULL"))
register(Function("IS NOT NULL", Signature(("any",)), certain, _is_not_null, syntax="a IS NOT NULL"))
for _word, _wanted in {"TRUE": True, "FALSE": False, "UNKNOWN": None}.items():
    for _negation in ("", "NOT "):
        _full = f"IS {_negation}{_word}"
        register(
            Function(
                _full,
                Signature(("boolean",)),
                certain,
                _is(_wanted, bool(_negation)),  # type: ignore[arg-type]
                syntax=f"a {_full}",
            )
        )


def _cast(values: Datum, kind: pa.DataType) -> Datum:
    return values if values.type == kind else values.cast(kind, safe=False)


def _case_type(arguments: Sequence[Expression]) -> DataType:
    found = common_type([argument.type for argument in (*arguments[1:-1:2], arguments[-1])])
    return found if found is not None else NullType()


def _case(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    kind = arrow_type(call.type)
    conditions = [as_array(pc.fill_null(_boolean(each), False), context.rows) for each in arguments[0:-1:2]]
    values = [_cast(each, kind) for each in (*arguments[1:-1:2], arguments[-1])]
    if pa.types.is_null(kind):
        return pa.scalar(None, kind)
    if pa.types.is_nested(kind):
        return _nested_case(conditions, values, context.rows)
    return pc.case_when(pa.StructArray.from_arrays(conditions, [str(i) for i in range(len(conditions))]), *values)


def _nested_case(conditions: list[pa.Array], values: list[Datum], rows: int) -> Datum:
    result = as_array(values[-1], rows)
    for condition, value in reversed(list(zip(conditions, values[:-1], strict=True))):
        result = pc.if_else(condition, as_array(value, rows), result)
    return result


def _coalesced(arguments: Sequence[Expression]) -> DataType:
    kinds = [argument.type for argument in arguments]
    found = common_type(kinds) or NullType()
    return found.with_nullability(all(kind.is_nullable for kind in kinds))


def _coalesce(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    kind = arrow_type(call.type)
    if pa.types.is_nested(kind):
        result = as_array(_cast(arguments[0], kind), context.rows)
        for argument in arguments[1:]:
            result = pc.if_else(pc.is_valid(result), result, as_array(_cast(argument, kind), context.rows))
        return result
    return pc.coalesce(*[_cast(argument, kind) for argument in arguments])


def _null_if(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    left, right = arguments
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return left
    if pa.types.is_nested(left.type):
        same = nested_equality(left, right, context.rows)
    elif left.type != right.type:
        wide = common_type([each.type for each in call.args])
        assert wide is not None
        same = pc.equal(_cast(left, arrow_type(wide)), _cast(right, arrow_type(wide)))
    else:
        same = pc.equal(left, right)
    return pc.if_else(pc.fill_null(same, False), pa.scalar(None, left.type), left)


def _chosen(arguments: Sequence[Expression]) -> DataType:
    kinds = [argument.type for argument in arguments[1:]]
    return (common_type(kinds) or NullType()).with_nullability(any_nullable(kinds))


def _in(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    """IN a list of constants. A NULL among them makes a miss NULL."""
    values, *_ = arguments
    constants = [argument.value for argument in call.args[1:] if isinstance(argument, Literal)]
    known = pa.array([value for value in constants if value is not None], values.type)
    found = pc.is_in(values, value_set=known)
    found = pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))
    if None in constants:
        return pc.if_else(pc.fill_null(found, False), pa.scalar(True), pa.scalar(None, pa.bool_()))
    return found


register(
    Function("CASE", Signature(("any",), repeated=True), _case_type, _case, syntax="CASE WHEN a THEN b ELSE c END")
)
register(Function("COALESCE", Signature(("any",), repeated=True), _coalesced, _coalesce))
register(Function("IFNULL", Signature(("any", "any")), _coalesced, _coalesce))
register(Function("NULLIF", Signature(("comparable", "comparable")), lambda a: a[0].type.nullable(), _null_if))
register(Function("IF", Signature(("boolean", "any", "any")), _chosen, _case))
register(Function("IN", Signature(("any",), repeated=True), truth, _in, syntax="a IN (b, c)"))


def _single(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    value, rows = arguments
    most = pc.max(rows).as_py() if isinstance(rows, pa.Array) else rows.as_py()
    if most is not None and most > 1:
        raise ProgramError("A query that stands for a value has given more than one row. Add a condition, or LIMIT 1.")
    return value


# The value of a query that has one row: the greatest one, and how many rows there are.
register(
    Function(
        "$SINGLE_VALUE", Signature(("any", "integer")), lambda args: args[0].type.nullable(), _single, can_fail=True
    )
)
