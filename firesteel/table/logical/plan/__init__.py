"""The relational tree: what a query does, with every name resolved and every type known."""

from firesteel.table.logical.plan.base import OneInput, Plan, unique_names
from firesteel.table.logical.plan.changelogs import FromChangelog, ToChangelog
from firesteel.table.logical.plan.groups import Aggregate, Expand, TableAggregate
from firesteel.table.logical.plan.joins import Join, LookupJoin, TemporalJoin
from firesteel.table.logical.plan.relations import (
    Correlate,
    Filter,
    Project,
    Replicate,
    Scan,
    Sort,
    SortOrder,
    UnionAll,
    Values,
)
from firesteel.table.logical.plan.windows import OverWindow, RowNumber, SortedWindow, WindowTable, WithCalls

__all__ = [
    "Aggregate",
    "Correlate",
    "Expand",
    "Filter",
    "FromChangelog",
    "Join",
    "LookupJoin",
    "OneInput",
    "OverWindow",
    "Plan",
    "Project",
    "Replicate",
    "RowNumber",
    "Scan",
    "Sort",
    "SortOrder",
    "SortedWindow",
    "TableAggregate",
    "TemporalJoin",
    "ToChangelog",
    "UnionAll",
    "Values",
    "WindowTable",
    "WithCalls",
    "unique_names",
]
