"""CURRENT_WATERMARK: how far event time has come where the function is called."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from firesteel.table.functions.evaluation import EvaluationContext
from firesteel.table.functions.registry import Datum, Function, Signature, register
from firesteel.table.logical.expressions import Call, Expression
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import DataType, LocalZonedTimestampType, TimestampType

__all__ = ["CURRENT_WATERMARK"]

CURRENT_WATERMARK = "CURRENT_WATERMARK"


def _type(args: Sequence[Expression]) -> DataType:
    return LocalZonedTimestampType(3) if isinstance(args[0].type, LocalZonedTimestampType) else TimestampType(3)


def _current(call: Call, arguments: list[Datum], context: EvaluationContext) -> Datum:
    kind = arrow_type(call.type)
    return pa.scalar(context.watermark, pa.timestamp("ms", kind.tz)).cast(kind)


register(Function(CURRENT_WATERMARK, Signature(("timestamp",)), _type, _current, deterministic=False))
