"""EXPLAIN: what is said of the plans of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firesteel.common.configuration import Configuration
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.logical.plan import Plan
from firesteel.table.physical.batch_explain import explained_in_batch
from firesteel.table.physical.explain import explained
from firesteel.table.physical.planner import Planner

if TYPE_CHECKING:
    from firesteel.table.table_environment import TableEnvironment

__all__ = ["explanation"]


def explanation(env: TableEnvironment, plans: Sequence[Plan], details: Sequence[Any], targets: Sequence[Any]) -> str:
    """The plans as text. ``targets`` are the tables that the rows of each go to, if they go to any."""
    names = [env._target(path, plan)[0] for path, plan in zip(targets, plans, strict=False)]
    if not env._streaming:
        return explained_in_batch(plans, names)
    text = explained(plans, names)
    if ExplainDetail.JSON_EXECUTION_PLAN in details:
        text += f"\n== Physical Execution Plan ==\n{_execution_plan(env, plans)}"
    return text


def _execution_plan(env: TableEnvironment, plans: Sequence[Plan]) -> str:
    """The operators of a stream as JSON. They are built in an environment of their own, and do not run."""
    program = StreamExecutionEnvironment(Configuration(env._config.get_configuration()))
    planner = Planner(program, env._config.get_local_timezone())
    for plan in plans:
        planner.stream(plan)
    return program.get_execution_plan()
