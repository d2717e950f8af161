"""What all parts of the planner share: ids, keyed operators, steps without state, calls of aggregates."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from firesteel.datastream.data_stream import DataStream
from firesteel.runtime.columns.routing import KeyColumns
from firesteel.runtime.columns.types import ColumnsType
from firesteel.runtime.operators.table import AggregateCall, Calc, Order
from firesteel.table.logical.expressions import AggregateCall as LogicalCall
from firesteel.table.logical.expressions import Expression
from firesteel.table.logical.plan import Join, Plan, SortOrder, TemporalJoin
from firesteel.table.physical.calcs import CalcPlan, steps_of
from firesteel.table.physical.columns import columns
from firesteel.table.physical.state_tables import described
from firesteel.table.physical.user_aggregates import aggregate_of, check_methods
from firesteel.table.types.arrow import arrow_schema, arrow_type

__all__ = ["PlannerBase", "orders_of", "schema_of"]


def schema_of(plan: Plan) -> pa.Schema:
    """The layout of a relation's batches."""
    return arrow_schema(plan.names, plan.types)


def orders_of(order: Iterable[SortOrder]) -> tuple[Order, ...]:
    """An order of rows as operators take it."""
    return tuple(Order(each.column, not each.descending, not each.nulls_last) for each in order)


class PlannerBase(ABC):
    """The tools that relations are made operators with."""

    def __init__(self, time_zone: str, mini_batch: bool, state_ttl: int | None) -> None:
        self._time_zone = time_zone
        self._mini_batch = mini_batch
        self._state_ttl = state_ttl
        self._uids: dict[str, int] = {}

    @abstractmethod
    def stream(self, plan: Plan) -> DataStream:
        """A stream of batches with the plan's columns."""

    # Ids.

    def share_names(self, uids: dict[str, int]) -> None:
        """Ids are counted together with those of other planners of the same program."""
        self._uids = uids

    def identified(self, stream: DataStream, plan: Plan, *details: Any) -> DataStream:
        """An operator with state, found again by what the plan says up to here, so that an edited query keeps what did
        not change. Who reads its state is told what the columns are."""
        return described(stream, plan).uid(self.named(type(plan).__name__.lower(), plan, *details))

    def named(self, kind: str, *what: Any) -> str:
        """An id for an operator that is known by its kind and by these. Several of them are numbered."""
        digest = hashlib.sha256(repr(what).encode()).hexdigest()[:16]
        number = self._uids[digest] = self._uids.get(digest, -1) + 1
        return f"sql-{kind}-{digest}" + (f"-{number}" if number else "")

    # Operators with state.

    def _keyed(self, plan: Plan, input: Plan, keys: tuple[int, ...], name: str, spec: Any, *details: Any) -> DataStream:
        """An operator over a stream that is keyed by some columns; without any it runs alone."""
        result = self.stream(input).key_by(KeyColumns(keys)).transform(name, spec, ColumnsType(spec.schema))
        return self.identified(result if keys else result.force_non_parallel(), plan, *details)

    def _paired(self, plan: Join | TemporalJoin, name: str, spec: Any) -> DataStream:
        """An operator over two streams that are keyed by the keys of a join."""
        pair = self.stream(plan.left).connect(self.stream(plan.right))
        keyed = pair.key_by(KeyColumns(plan.left_keys), KeyColumns(plan.right_keys))
        result = keyed.transform(name, spec, ColumnsType(spec.schema))
        return self.identified(result if plan.left_keys else result.force_non_parallel(), plan)

    def _ttl(self, hinted: int | None) -> int | None:
        """Zero means for ever."""
        return (hinted if hinted is not None else self._state_ttl) or None

    # Steps without state.

    def _calculated(self, calc: CalcPlan, below: DataStream) -> DataStream:
        for step in steps_of(calc):
            below = self._step(step, below)
        return below

    def _step(self, calc: CalcPlan, below: DataStream) -> DataStream:
        if calc.is_identity:
            return below
        schema = arrow_schema(calc.names, [each.type for each in calc.expressions])
        spec = Calc(columns(calc.expressions, self._time_zone), schema, self._condition(calc.condition))
        return below.transform(f"Calc({_described(calc.expressions)})", spec, ColumnsType(schema))

    def _condition(self, condition: Expression | None) -> Any:
        return None if condition is None else columns((condition,), self._time_zone)[0]

    # Aggregates.

    def _calls(
        self,
        calls: tuple[LogicalCall, ...],
        input: Plan,
        retracts: bool,
        merges: bool = False,
        each_row: bool = False,
    ) -> tuple[AggregateCall, ...]:
        return tuple(self._call(call, input, retracts, merges, each_row) for call in calls)

    def _call(
        self, call: LogicalCall, input: Plan, retracts: bool, merges: bool, each_row: bool = False
    ) -> AggregateCall:
        argument = call.args[0] if call.args else None
        kind = arrow_type(call.type)
        if call.user is None:
            return AggregateCall(call.function, argument, kind, call.distinct, call.filter, options=call.options)
        check_methods(call.user, retracts, merges)
        kinds = [input.types[index] for index in call.given]
        user = aggregate_of(call.user, kinds, self._time_zone, each_row)
        return AggregateCall(call.function, argument, kind, call.distinct, call.filter, user, call.given)


def _described(expressions: tuple[Expression, ...]) -> str:
    text = ", ".join(map(str, expressions))
    return text if len(text) <= 60 else f"{text[:57]}..."
