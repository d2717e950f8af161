"""EXPLAIN: what is said of the plans of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.configuration import Configuration
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.catalog.tables import CatalogObject, DeclaredTable
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.insertions import Insertion
from firesteel.table.logical.plan import Plan
from firesteel.table.physical.batch_explain import explained_in_batch
from firesteel.table.physical.connectors import check_sink
from firesteel.table.physical.explain_details import explained_in_detail
from firesteel.table.physical.planner import Planner
from firesteel.table.physical.sinks import fitted_for
from firesteel.table.table_config import session_zone

if TYPE_CHECKING:
    from firesteel.table.table_environment import TableEnvironment

__all__ = ["explanation"]


def explanation(
    env: TableEnvironment, plans: Sequence[Plan], details: Sequence[Any], inserts: Sequence[Insertion]
) -> str:
    """The plans as text. ``inserts`` say where the rows of each go, if they go anywhere."""
    targets = [env._target(each.target, each.plan) for each in inserts]
    names = [name for name, _ in targets]
    conflicts = [each.on_conflict.value if each.on_conflict is not None else "" for each in inserts]
    if not env._streaming:
        return explained_in_batch(plans, names)
    for insert, (name, table) in zip(inserts, targets, strict=True):
        check_sink(*_fitted(table, name, insert.plan), env.get_config(), insert.on_conflict)
    text = explained_in_detail(
        plans,
        names,
        conflicts,
        modes=ExplainDetail.CHANGELOG_MODE in details,
        advice=ExplainDetail.PLAN_ADVICE in details,
        costs=ExplainDetail.ESTIMATED_COST in details,
        mini_batch=env._config.get_configuration().get_boolean("table.exec.mini-batch.enabled", False),
    )
    if ExplainDetail.JSON_EXECUTION_PLAN in details:
        text += f"\n== Physical Execution Plan ==\n{_execution_plan(env, plans)}"
    return text


def _fitted(table: CatalogObject, name: str, plan: Plan) -> tuple[DeclaredTable, str, Plan]:
    declared, fitted = fitted_for(table, name, plan)
    return declared, name, fitted


def _execution_plan(env: TableEnvironment, plans: Sequence[Plan]) -> str:
    """The operators of a stream as JSON. They are built in an environment of their own, and do not run."""
    program = StreamExecutionEnvironment(Configuration(env._config.get_configuration()))
    planner = Planner(program, session_zone(env._config))
    for plan in plans:
        planner.stream(plan)
    return program.get_execution_plan()
