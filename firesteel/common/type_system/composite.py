"""Tuples and rows: types with fields."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from firesteel.common.type_system.base import ALWAYS, TypeInformation, expected
from firesteel.common.type_system.codegen import Scope, compile_expression
from firesteel.common.types import Row, RowKind, make_row
from firesteel.errors import ProgramError, short_repr

__all__ = ["RowTypeInfo", "TupleTypeInfo"]


class _FieldsTypeInfo(TypeInformation):
    """What tuples and rows share: fields in order, each with a type."""

    _field_types: list[TypeInformation]

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        for position, field_type in enumerate(field_types):
            if not isinstance(field_type, TypeInformation):
                raise ProgramError(
                    f"Field {position} needs a type such as Types.STRING(), got {short_repr(field_type, 80)}."
                )
        self._field_types = list(field_types)

    def get_field_types(self) -> list[TypeInformation]:
        """The types of the fields, in order."""
        return self._field_types

    def get_field_names(self) -> list[str]:
        """The names of the fields, in order: f0, f1, … where none were given."""
        return [f"f{position}" for position in range(len(self._field_types))]

    def field_index(self, name_or_pos: str | int) -> int:
        """The position of a field, given by name or by position.

        >>> RowTypeInfo([], []).field_index("a")
        Traceback (most recent call last):
        firesteel.errors.ProgramError: No field 'a' in ROW<>; its fields are [].
        """
        names = self.get_field_names()
        if isinstance(name_or_pos, str) and name_or_pos in names:
            return names.index(name_or_pos)
        if type(name_or_pos) is int and 0 <= name_or_pos < len(names):
            return name_or_pos
        raise ProgramError(f"No field {name_or_pos!r} in {self}; its fields are {names}.")

    @abstractmethod
    def _values_of(self, value: Any) -> Sequence[Any] | None:
        """The fields of a value in this type's order, or None if it is nothing of the kind."""

    def _accepts(self) -> Callable[[Any], bool]:
        """The check of any value: the whole truth, of which the source is the fast part."""
        checkers = [field_type.checker() for field_type in self._field_types]
        values_of, count = self._values_of, len(checkers)

        def accepts(value: Any) -> bool:
            values = values_of(value)
            return (
                values is not None
                and len(values) == count
                and all(check is None or check(item) for check, item in zip(checkers, values, strict=True))
            )

        return accepts

    def explain(self, value: Any) -> str | None:
        if value is None:
            return None
        values = self._values_of(value)
        if values is None:
            return expected(self, value)
        count = len(self._field_types)
        if len(values) != count:
            return f"{expected(f'{self} with {count} fields', value)} with {len(values)}"
        for position, (field_type, item) in enumerate(zip(self._field_types, values, strict=True)):
            text = field_type.explain(item)
            if text is not None:
                return f"field {self._field_label(position)} of {self}: {text}"
        return None

    def _field_label(self, position: int) -> str:
        return str(position)

    def _check_fields(self, values: str, scope: Scope) -> list[str]:
        """The sources of the fields' checks, given the source of a sequence of their values."""
        sources = []
        for position, field_type in enumerate(self._field_types):
            name = scope.variable()
            source = field_type._check_source(f"({name} := {values}[{position}])", name, scope)
            if source is not None:
                sources.append(source)
        return sources

    def _canonical_fields(self, values: str, scope: Scope) -> list[str] | None:
        """The sources of tests that no field needs conversion; None if nothing short of converting tells."""
        sources = []
        for position, field_type in enumerate(self._field_types):
            name = scope.variable()
            source = field_type._canonical_source(f"({name} := {values}[{position}])", name, scope)
            if source is None:
                return None
            if source != ALWAYS:
                sources.append(f"({source} or {name} is None)")
        return sources

    def _field_converter(self) -> Callable[[Sequence[Any]], list[Any]]:
        """A function from the fields of an accepted value to a new list of what they become."""
        converters = [field_type.converter() for field_type in self._field_types]
        if not any(converters):
            return list
        scope = Scope()
        items = [
            f"v[{position}]" if convert is None else f"{scope.bind(convert)}(v[{position}])"
            for position, convert in enumerate(converters)
        ]
        return compile_expression(f"[{', '.join(items)}]", scope, f"converter of {self}")

    def _key(self) -> Hashable:
        # Names do not count, as in Flink: a row type with other names is still the same type.
        return tuple(self._field_types)


class TupleTypeInfo(_FieldsTypeInfo):
    """TUPLE: a tuple with as many fields as declared. A list or a row becomes one.

    >>> from firesteel.common.typeinfo import Types
    >>> pair = Types.TUPLE([Types.STRING(), Types.INT()])
    >>> pair.checker()(("a", 1)), pair.converter()(["a", 1]), pair.formatter()(("a", 1))
    (True, ('a', 1), '(a,1)')
    >>> pair.explain(("a", "x"))
    "field 1 of TUPLE<STRING, INT>: expected INT, got str 'x'"
    """

    def _values_of(self, value: Any) -> Sequence[Any] | None:
        if isinstance(value, tuple | list):
            return value
        return value._values if isinstance(value, Row) else None

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        fields = [f"len({name}) == {len(self._field_types)}", *self._check_fields(name, scope)]
        slow = scope.bind(self._accepts())
        return f"(type({first}) is tuple and {' and '.join(fields)} or {name} is None or {slow}({name}))"

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        fields = self._canonical_fields(name, scope)
        return None if fields is None else " and ".join([f"type({first}) is tuple", *fields])

    def _slow_converter(self) -> Callable[[Any], Any]:
        convert, values_of = self._field_converter(), self._values_of

        def to_tuple(value: Any) -> Any:
            return None if value is None else tuple(convert(values_of(value) or ()))

        return to_tuple

    def _nested_formatter(self) -> Callable[[Any], str]:
        formats = [field_type._nested_formatter() for field_type in self._field_types]

        def text(value: Any) -> str:
            if value is None:
                return "null"
            return f"({','.join([show(item) for show, item in zip(formats, value, strict=False)])})"

        return text

    def __repr__(self) -> str:
        return f"TUPLE<{', '.join(map(repr, self._field_types))}>"


class RowTypeInfo(_FieldsTypeInfo):
    """ROW and ROW_NAMED: a :class:`~firesteel.common.types.Row` that bears this type's field names.

    A row without names takes its values by position, one with names by name. A tuple, a list, a dict or an
    object with such attributes becomes a row.

    >>> from firesteel.common.typeinfo import Types
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> person.converter()(Row(age=36, name="Ada"))
    Row(name='Ada', age=36)
    >>> person.formatter()(Row("Ada", None))
    '+I[Ada,None]'
    """

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        super().__init__(field_types)
        if field_names is not None:
            field_names = list(field_names)
            if len(field_names) != len(self._field_types):
                raise ProgramError(
                    f"A row type needs a name for each field: "
                    f"got {len(field_names)} names {field_names} for {len(self._field_types)} types."
                )
            if len(set(field_names)) != len(field_names):
                raise ProgramError(f"The field names of a row type must differ, got {field_names}.")
        self._named = field_names is not None
        self._names = tuple(super().get_field_names() if field_names is None else field_names)

    def get_field_names(self) -> list[str]:
        """The names of the fields, in order: f0, f1, … where none were given."""
        return list(self._names)

    def get_field_index(self, field_name: str) -> int:
        """The position of a field, or -1 if there is none of that name."""
        return self._names.index(field_name) if field_name in self._names else -1

    def _values_of(self, value: Any) -> Sequence[Any] | None:
        names = self._names
        if isinstance(value, Row):
            fields = value._fields
            if fields is None or fields == names:
                return value._values
            if all(name in fields for name in names):
                return value.get_fields_by_names(names)
            return None
        if isinstance(value, tuple | list):
            return value
        if isinstance(value, dict):
            return [value.get(name) for name in names]
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict) and names and all(name in attributes for name in names):
            return [attributes[name] for name in names]
        return None

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        row, names, slow = scope.bind(Row), scope.bind(self._names), scope.bind(self._accepts())
        values, fields, count = scope.variable(), scope.variable(), len(self._field_types)
        # Rows, and the tuples that functions return in their place; for the rest the length is one that never fits.
        other = scope.bind((None,) * (count + 1))
        own = f"{name}._values if ({fields} := {name}._fields) is None or {fields} == {names} else {other}"
        looked_at = f"({own}) if type({first}) is {row} else {name} if type({name}) is tuple else {other}"
        conditions = [f"len({values} := ({looked_at})) == {count}", *self._check_fields(values, scope)]
        return f"({' and '.join(conditions)} or {name} is None or {slow}({name}))"

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        values = scope.variable()
        fields = self._canonical_fields(values, scope)
        if fields is None:
            return None
        conditions = [f"type({first}) is {scope.bind(Row)}", f"{name}._fields == {scope.bind(self._names)}"]
        if fields:
            conditions.append(f"(({values} := {name}._values) is not None)")
        return " and ".join([*conditions, *fields])

    def _slow_converter(self) -> Callable[[Any], Any]:
        convert, values_of, names = self._field_converter(), self._values_of, self._names

        def to_row(value: Any) -> Any:
            if type(value) is tuple:  # these two are by far the most frequent
                return make_row(names, convert(value))
            if type(value) is Row and value._fields is None:
                return make_row(names, convert(value._values), value._row_kind)
            if value is None:
                return None
            kind = value._row_kind if isinstance(value, Row) else RowKind.INSERT
            return make_row(names, convert(values_of(value) or ()), kind)

        return to_row

    def formatter(self) -> Callable[[Any], str]:
        # PyFlink turns an outermost row into text in Python and leaves rows inside other values to Java, so
        # the same row has commas and None here, but commas with spaces and null there.
        return _outer_row_text

    def _nested_formatter(self) -> Callable[[Any], str]:
        formats = [field_type._nested_formatter() for field_type in self._field_types]

        def text(value: Any) -> str:
            if value is None:
                return "null"
            shown = ", ".join([show(item) for show, item in zip(formats, value, strict=False)])
            return f"{value.get_row_kind()}[{shown}]"

        return text

    def _field_label(self, position: int) -> str:
        return f"'{self._names[position]}'" if self._named else str(position)

    def __repr__(self) -> str:
        if not self._named:
            return f"ROW<{', '.join(map(repr, self._field_types))}>"
        named = zip(self._names, self._field_types, strict=True)
        return f"ROW<{', '.join(f'{name} {field_type}' for name, field_type in named)}>"


def _outer_row_text(value: Any) -> str:
    if value is None:
        return "null"
    return f"{value.get_row_kind()}[{','.join(map(str, value))}]"
