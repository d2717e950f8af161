"""What the settings say about users' functions, for the functions of a plan."""

from __future__ import annotations

import logging
from dataclasses import fields, is_dataclass
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.table.functions.async_calls import AsyncOptions
from firesteel.table.functions.column_functions import is_declarable
from firesteel.table.functions.user_functions import UserFunction
from firesteel.table.logical.expressions import Expression, UserCall
from firesteel.table.logical.plan import Plan

__all__ = ["COLUMN_FUNCTIONS", "apply_function_settings"]

COLUMN_FUNCTIONS = "firesteel.table.column-functions"
"""Whether simple functions are computed for whole columns."""

logger = logging.getLogger("firesteel")


def apply_function_settings(plan: Plan, configuration: Configuration) -> None:
    """Tells the functions of a plan what the settings say."""
    options = AsyncOptions.of(configuration)
    on_columns = configuration.get_boolean(COLUMN_FUNCTIONS, True)
    for calls in _calls_of(plan):
        user: UserFunction = calls[0].user
        user.async_options = options
        if not on_columns:
            user.column_form = None
        elif user.kind == "scalar" and not user.pandas:
            _look_for_column_form(user, calls)


def _look_for_column_form(user: UserFunction, calls: list[UserCall]) -> None:
    reason = user.look_for_column_form()
    others = [[each.type for each in call.args if not is_declarable(each.type)] for call in calls]
    if reason is None and all(others):
        reason = f"it gets {others[0][0]}"
        user.column_form = None
    if reason is None:
        logger.info("the function %s (%s) is computed for whole columns.", user.name, user.place)
    else:
        logger.info("the function %s (%s) is called for each row: %s.", user.name, user.place, reason)


def _calls_of(plan: Plan) -> list[list[UserCall]]:
    """The calls of each function, in the order of the plan."""
    found: dict[int, list[UserCall]] = {}

    def visit(part: Any) -> None:
        if isinstance(part, UserCall):
            found.setdefault(id(part.user), []).append(part)
        if isinstance(part, tuple):
            for each in part:
                visit(each)
        elif isinstance(part, Plan | Expression) and is_dataclass(part):
            for field in fields(part):
                visit(getattr(part, field.name))

    visit(plan)
    return list(found.values())
