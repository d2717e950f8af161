"""Projections, filters, joins, unions, order: Spark has all of it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from firesteel.table.batch.expressions import ExpressionTranslator
from firesteel.table.batch.operators import by_operators
from firesteel.table.batch.spark_types import column_names
from firesteel.table.batch.translator import Translator, in_order, translates
from firesteel.table.logical.expressions import Call, Expression, InputRef, columns_of, rewrite
from firesteel.table.logical.joins import conjuncts
from firesteel.table.logical.patterns import MatchRecognize
from firesteel.table.logical.plan import (
    Filter,
    Join,
    LookupJoin,
    Project,
    Replicate,
    RowNumber,
    Sort,
    UnionAll,
)
from firesteel.table.physical.calcs import merged_calc

__all__: list[str] = []

_KINDS = {
    "INNER": "inner",
    "LEFT": "left_outer",
    "RIGHT": "right_outer",
    "FULL": "full_outer",
    "SEMI": "left_semi",
    "ANTI": "left_anti",
}


@translates(Project, Filter)
def _calc(translator: Translator, plan: Project | Filter) -> DataFrame:
    calc = merged_calc(plan)
    frame = translator.frame(calc.input)
    width = len(calc.input.names)
    expressions = translator.expressions(width)
    if calc.condition is not None:
        # One after the other: those that Spark computes come before those that it calls Python for.
        for part in conjuncts(calc.condition) if _splits(calc.condition, expressions) else [calc.condition]:
            frame = frame.filter(expressions.column(part))
    if calc.is_identity or calc.expressions == tuple(calc.input.refs()):
        return frame
    return translator.projected(frame, calc.expressions, width)


def _splits(condition: Expression, expressions: ExpressionTranslator) -> bool:
    """Whether the first parts, which guard the others, are Spark's, so that rows are gone before the others run."""
    parts = conjuncts(condition)
    native = [expressions.is_native(part) for part in parts]
    return native == sorted(native, reverse=True) and native.count(False) <= 1


@translates(UnionAll)
def _union(translator: Translator, plan: UnionAll) -> DataFrame:
    first, *others = (translator.frame(branch) for branch in plan.branches)
    for other in others:
        first = first.union(other)
    return first


@translates(RowNumber)
def _row_number(translator: Translator, plan: RowNumber) -> DataFrame:
    frame = translator.frame(plan.input)
    window = Window.partitionBy(*[F.col(f"c{key}") for key in plan.partition]).orderBy(*in_order(plan.order))
    return frame.withColumn(f"c{len(plan.input.names)}", F.row_number().over(window).cast("bigint"))


@translates(Sort)
def _sort(translator: Translator, plan: Sort) -> DataFrame:
    frame = translator.frame(plan.input)
    if plan.order:
        frame = frame.orderBy(*in_order(plan.order))
    if plan.offset:
        frame = frame.offset(plan.offset)
    return frame if plan.limit is None else frame.limit(plan.limit)


@translates(Join)
def _join(translator: Translator, plan: Join) -> DataFrame:
    sides = _Sides(translator, plan)
    if not sides.possible:
        return by_operators(translator, plan, [plan.left_keys, plan.right_keys])
    condition = sides.condition
    parts = []
    for index, (a, b) in enumerate(zip(plan.left_keys, plan.right_keys, strict=True)):
        left, right = F.col(f"l{a}"), F.col(f"r{b}")
        # In set operations NULL is a value as any other.
        parts.append(left.eqNullSafe(right) if plan.null_equal and plan.null_equal[index] else left == right)
    if condition is not None:
        parts.append(condition)
    on: Column | None = None
    for part in parts:
        on = part if on is None else on & part
    kind = _KINDS[plan.kind]
    joined = sides.left.join(sides.right, on, kind) if on is not None else _crossed(sides, kind)
    names = column_names(len(plan.left.names), "l")
    if plan.kind not in ("SEMI", "ANTI"):
        names += column_names(len(plan.right.names), "r")
    return joined.select(*[F.col(name).alias(f"c{index}") for index, name in enumerate(names)])


@translates(LookupJoin)
def _lookup(translator: Translator, plan: LookupJoin) -> DataFrame:
    """The table is read as a whole: nothing changes while a query of batch mode runs."""
    whole = Join(plan.left, plan.right, plan.kind, plan.left_keys, plan.right_keys, plan.condition, plan.names)
    return translator.frame(whole)


@translates(MatchRecognize)
def _matched(translator: Translator, plan: MatchRecognize) -> DataFrame:
    return by_operators(translator, plan, [plan.partition])


@translates(Replicate)
def _replicate(translator: Translator, plan: Replicate) -> DataFrame:
    """Each row as often as its last column says."""
    times = F.col(f"c{len(plan.names)}")
    repeated = translator.frame(plan.input).filter(times > F.lit(0))
    return repeated.withColumn("n", F.explode(F.sequence(F.lit(1).cast("bigint"), times))).select(
        *column_names(len(plan.names))
    )


class _Sides:
    """Both inputs of a join with names of their own, and the condition over them.

    Spark calls no Python inside the condition of an outer join: what needs one side alone is computed there before.
    """

    def __init__(self, translator: Translator, plan: Join) -> None:
        self.left, self.right = translator.frame(plan.left), translator.frame(plan.right)
        self._widths = len(plan.left.names), len(plan.right.names)
        self.left = self.left.toDF(*column_names(self._widths[0], "l"))
        self.right = self.right.toDF(*column_names(self._widths[1], "r"))
        self._names = [*column_names(self._widths[0], "l"), *column_names(self._widths[1], "r")]
        self._translator = translator
        self.condition: Column | None = None
        self.possible = True
        """Whether Spark can join them."""
        if plan.condition is not None:
            moved = self._computed_before(plan.condition)
            expressions = ExpressionTranslator(self._names, translator.context)
            self.possible = plan.kind == "INNER" or expressions.is_native(moved)
            self.condition = expressions.column(moved)

    def _computed_before(self, condition: Expression) -> Expression:
        expressions = ExpressionTranslator(self._names, self._translator.context)

        def replace(part: Expression) -> Expression | None:
            if not isinstance(part, Call) or expressions.is_native(part):
                return part
            used = set(columns_of(part))
            if used and (max(used) < self._widths[0] or min(used) >= self._widths[0]):
                return self._added(part, expressions.column(part), max(used) < self._widths[0])
            return None

        return rewrite(condition, replace)

    def _added(self, part: Expression, column: Column, left: bool) -> Expression:
        name = f"x{len(self._names)}"
        if left:
            self.left = self.left.withColumn(name, column)
        else:
            self.right = self.right.withColumn(name, column)
        self._names.append(name)
        return InputRef(len(self._names) - 1, part.type)


def _crossed(sides: _Sides, kind: str) -> DataFrame:
    if kind == "inner":
        return sides.left.crossJoin(sides.right)
    return sides.left.join(sides.right, F.lit(True), kind)
