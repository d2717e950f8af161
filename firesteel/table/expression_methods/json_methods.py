"""JSON in the Table API: what its functions are told, and the methods of expressions that call them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from firesteel.table.expression_methods.calls import NOWHERE, HoldsNode, method_of, node_of
from firesteel.table.sql.syntax import IsTest
from firesteel.table.types.data_types import DataType

if TYPE_CHECKING:
    from firesteel.table.expression import Expression

__all__ = [
    "JsonExistsOnError",
    "JsonMethods",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
]


class JsonType(enum.Enum):
    """What ``is_json`` looks for."""

    VALUE = "VALUE"
    SCALAR = "SCALAR"
    ARRAY = "ARRAY"
    OBJECT = "OBJECT"


class JsonExistsOnError(enum.Enum):
    """What ``json_exists`` gives for what cannot be read."""

    TRUE = "TRUE"
    FALSE = "FALSE"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"


class JsonValueOnEmptyOrError(enum.Enum):
    """What ``json_value`` gives where there is no value."""

    NULL = "NULL"
    ERROR = "ERROR"
    DEFAULT = "DEFAULT"


class JsonQueryWrapper(enum.Enum):
    """Whether ``json_query`` puts what it finds into an array."""

    WITHOUT_ARRAY = "WITHOUT"
    CONDITIONAL_ARRAY = "WITH CONDITIONAL"
    UNCONDITIONAL_ARRAY = "WITH UNCONDITIONAL"


class JsonQueryOnEmptyOrError(enum.Enum):
    """What ``json_query`` gives where there is nothing."""

    NULL = "NULL"
    EMPTY_ARRAY = "EMPTY ARRAY"
    EMPTY_OBJECT = "EMPTY OBJECT"
    ERROR = "ERROR"


class JsonOnNull(enum.Enum):
    """What becomes of NULL in an object or an array."""

    NULL = "NULL"
    ABSENT = "ABSENT"


class JsonMethods(HoldsNode):
    """The methods of expressions about JSON in text."""

    json_quote = method_of("JSON_QUOTE")
    json_unquote = method_of("JSON_UNQUOTE")

    def is_json(self, json_type: JsonType | None = None) -> Expression:
        """Whether the text is JSON.

        >>> from firesteel.table.expressions import lit
        >>> lit("[1]").is_json(JsonType.ARRAY)
        <Expression IsTest>
        """
        what = "JSON" if json_type is None else f"JSON {json_type.value}"
        return self._made(IsTest(self._node, what, False, span=NOWHERE))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression:
        """Whether there is a value at the path."""
        return self._json("JSON_EXISTS", path, {} if on_error is None else {"ON ERROR": on_error.value})

    def json_value(
        self,
        path: str,
        returning_type: DataType | None = None,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression:
        """One value at the path, as text or as ``returning_type``."""
        clauses: dict[str, Any] = {} if returning_type is None else {"RETURNING": returning_type}
        for when, behaviour, default in (
            ("ON EMPTY", on_empty, default_on_empty),
            ("ON ERROR", on_error, default_on_error),
        ):
            chosen = behaviour is JsonValueOnEmptyOrError.DEFAULT
            clauses[when] = (default,) if chosen else behaviour.value
        return self._json("JSON_VALUE", path, clauses)

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression:
        """The array or the object at the path, as JSON.

        >>> from firesteel.table.expressions import col
        >>> col("a").json_query("$.b", JsonQueryWrapper.CONDITIONAL_ARRAY)
        <Expression JSON_QUERY(a, '$.b':CHAR(3))>
        """
        return self._json(
            "JSON_QUERY",
            path,
            {"WRAPPER": wrapping_behavior.value, "ON EMPTY": on_empty.value, "ON ERROR": on_error.value},
        )

    def _json(self, name: str, path: str, clauses: dict[str, Any]) -> Expression:
        # A default is a tuple of one, so that NULL is one, too.
        shown = [(when, node_of(what[0]) if isinstance(what, tuple) else what) for when, what in clauses.items()]
        return self._called(name, self, path, clauses=tuple(shown))
