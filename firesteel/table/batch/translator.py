"""Plans as DataFrames: every kind of relation has a translation in a registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from firesteel.table.batch.expressions import ExpressionTranslator
from firesteel.table.batch.kernels import KernelContext
from firesteel.table.batch.spark_types import column_names
from firesteel.table.logical.expressions import Expression
from firesteel.table.logical.plan import Plan, SortOrder
from firesteel.table.sql.errors import NotSupportedError

__all__ = ["Translator", "in_order", "in_order_of", "translates"]

P = TypeVar("P", bound=Plan)
Translate: TypeAlias = "Callable[[Translator, Any], DataFrame]"

_TRANSLATIONS: dict[type[Plan], Translate] = {}


def translates(*kinds: type[Plan]) -> Callable[[Translate], Translate]:
    """Registers the translation of a kind of relation."""

    def add(function: Translate) -> Translate:
        for kind in kinds:
            assert kind not in _TRANSLATIONS, f"{kind.__name__} is registered twice."
            _TRANSLATIONS[kind] = function
        return function

    return add


class Translator:
    """Makes DataFrames of the plans of one statement. Their columns are called c0, c1 and so on."""

    def __init__(self, session: SparkSession, context: KernelContext, configuration: Any) -> None:
        self.session = session
        self.context = context
        self.configuration = configuration
        self._built: dict[Plan, DataFrame] = {}

    def frame(self, plan: Plan) -> DataFrame:
        """The rows of a plan."""
        known = self._built.get(plan)
        if known is None:
            translate = _TRANSLATIONS.get(type(plan))
            if translate is None:
                raise NotSupportedError(f"Not supported yet in batch mode: {type(plan).__name__}.")
            known = self._built[plan] = translate(self, plan)
        return known

    def expressions(self, width: int) -> ExpressionTranslator:
        """For expressions over a DataFrame with so many columns."""
        return ExpressionTranslator(column_names(width), self.context)

    def projected(self, frame: DataFrame, expressions: Sequence[Expression], width: int) -> DataFrame:
        """Expressions over a DataFrame, as a DataFrame."""
        translate = self.expressions(width)
        return frame.select(*[translate.column(each).alias(f"c{i}") for i, each in enumerate(expressions)])


def in_order(order: Sequence[SortOrder]) -> list[Column]:
    """What Spark sorts by."""
    return [in_order_of(F.col(f"c{each.column}"), each) for each in order]


def in_order_of(column: Column, order: SortOrder) -> Column:
    """A column as a part of an order."""
    if order.descending:
        return column.desc_nulls_last() if order.nulls_last else column.desc_nulls_first()
    return column.asc_nulls_last() if order.nulls_last else column.asc_nulls_first()
