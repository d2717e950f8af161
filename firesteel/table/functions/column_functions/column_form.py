"""The form of a user's function for columns: made in the program, checked in the workers."""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass
from typing import Any, cast

from firesteel.table.functions.column_functions.column_values import ARROW_TYPES
from firesteel.table.functions.column_functions.declared_results import is_declarable
from firesteel.table.functions.column_functions.expression_nodes import Node
from firesteel.table.functions.column_functions.function_source import CodeIdentity, code_identity, function_tree
from firesteel.table.functions.column_functions.python_comparison import COLLECTIONS
from firesteel.table.functions.column_functions.translation import BUILTINS, NotTranslatedError, translated
from firesteel.table.types.data_types import DataType

__all__ = ["ColumnForm", "column_form", "plain_function"]


@dataclass(frozen=True)
class ColumnForm:
    """What is computed instead of calling a function, and which function that is."""

    body: Node
    arguments: int
    of_method: bool
    """Whether it is a method: its first parameter is the object, which it does not use."""
    code: CodeIdentity
    builtins: tuple[str, ...]
    """The names that have to mean Python's own functions."""
    closure: tuple[str, ...]
    """Names of the function around it, in the order of its closure."""
    outer: tuple[str, ...]
    """The names from outside that it uses as values, global ones and those of the function around it."""
    collections: tuple[str, ...]
    """Those of them that it looks for values in."""

    def outer_values(self, function: types.FunctionType) -> dict[str, Any]:
        """What names from outside of the function mean now, of those that mean something."""
        cells = dict(zip(self.closure, function.__closure__ or (), strict=True))
        found: dict[str, Any] = {}
        for name in (*self.outer, *self.collections):
            if name in cells:
                found[name] = _contents(cells[name])
            elif name in function.__globals__:
                found[name] = function.__globals__[name]
        return found

    def means_builtins(self, function: types.FunctionType) -> bool:
        """Whether nobody has given another meaning to the names of Python's own functions."""
        own: dict[str, Any] = cast(Any, function).__builtins__
        elsewhere = (self.closure, function.__globals__)
        return all(
            own.get(name) is BUILTINS[name] and not any(name in names for names in elsewhere) for name in self.builtins
        )


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # It has no value yet. This is no constant, so the batch is given up.
        return cell


def plain_function(called: Any) -> tuple[types.FunctionType, bool] | None:
    """The function behind what is called, and whether it is a method; None if something else is called."""
    if isinstance(called, types.FunctionType):
        return called, False
    if isinstance(called, types.MethodType) and isinstance(called.__func__, types.FunctionType):
        return called.__func__, True
    return None


def column_form(called: Any, result_type: DataType) -> ColumnForm:
    """The form of what is called for each row; :class:`NotTranslatedError` says why there is none.

    >>> from firesteel.table.types import DataTypes
    >>> try:
    ...     column_form(print, DataTypes.BIGINT())
    ... except NotTranslatedError as error:
    ...     print(error)
    it is no function written in Python
    """
    found = plain_function(called)
    if found is None:
        raise NotTranslatedError("it is no function written in Python")
    function, of_method = found
    if not is_declarable(result_type):
        raise NotTranslatedError(f"its result is {result_type}")
    if function.__defaults__ or function.__kwdefaults__:
        raise NotTranslatedError("it has default values")
    if function.__dict__:
        raise NotTranslatedError("it has attributes")
    if inspect.iscoroutinefunction(function):
        raise NotTranslatedError("it is awaited")
    tree = function_tree(function)
    if tree is None:
        raise NotTranslatedError("its source is not there, or is not certainly its own")
    code = function.__code__
    result = translated(tree, 1 if of_method else 0)
    arguments = code.co_argcount - (1 if of_method else 0)
    if arguments < 1:
        raise NotTranslatedError("it has no arguments")
    form = ColumnForm(
        result.body,
        arguments,
        of_method,
        code_identity(code),
        result.builtins,
        code.co_freevars,
        result.outer,
        result.collections,
    )
    values = form.outer_values(function)
    for name in form.outer:
        if name not in values or type(values[name]) not in (*ARROW_TYPES, type(None)):
            raise NotTranslatedError(f"{name} is no number, text or None")
    for name in form.collections:
        if type(values.get(name)) not in COLLECTIONS:
            raise NotTranslatedError(f"{name} is no tuple, list, set or dict")
    if not form.means_builtins(function):
        raise NotTranslatedError(f"one of {', '.join(form.builtins)} is not Python's own")
    return form
