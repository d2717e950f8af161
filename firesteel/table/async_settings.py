"""What the settings say about asynchronous functions, for the functions of a plan."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.table.functions.async_calls import AsyncOptions
from firesteel.table.logical.expressions import Expression, UserCall
from firesteel.table.logical.plan import Plan

__all__ = ["set_async_options"]


def set_async_options(plan: Plan, configuration: Configuration) -> None:
    """Tells the functions of a plan what the settings say."""
    options = AsyncOptions.of(configuration)

    def visit(part: Any) -> None:
        if isinstance(part, UserCall):
            part.user.async_options = options
        if isinstance(part, tuple):
            for each in part:
                visit(each)
        elif isinstance(part, Plan | Expression) and is_dataclass(part):
            for field in fields(part):
                visit(getattr(part, field.name))

    visit(plan)
