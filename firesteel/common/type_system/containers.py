"""Lists, maps and arrays: types with any number of elements."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from firesteel.common.type_system.base import ALWAYS, TypeInformation, expected
from firesteel.common.type_system.basic import BasicType, BasicTypeInfo
from firesteel.common.type_system.codegen import Scope
from firesteel.errors import ProgramError, short_repr

__all__ = [
    "BasicArrayTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PrimitiveArrayTypeInfo",
]


class ListTypeInfo(TypeInformation):
    """LIST: a list of elements of one type.

    >>> from firesteel.common.typeinfo import Types
    >>> numbers = Types.LIST(Types.INT())
    >>> numbers.formatter()([1, None]), numbers.explain([1, "x"])
    ('[1, null]', "element 1 of LIST<INT>: expected INT, got str 'x'")
    """

    _name = "LIST"

    def __init__(self, element_type: TypeInformation) -> None:
        if not isinstance(element_type, TypeInformation):
            raise ProgramError(
                f"{self._name} needs the type of its elements, such as Types.STRING(), "
                f"got {short_repr(element_type, 80)}."
            )
        self.elem_type = element_type

    def explain(self, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, list):
            return expected(self, value)
        for position, item in enumerate(value):
            text = self.elem_type.explain(item)
            if text is not None:
                return f"element {position} of {self}: {text}"
        return None

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        item = scope.variable()
        check = self.elem_type._check_source(item, item, scope)
        fast = f"isinstance({first}, list)"
        if check is not None:
            fast += f" and all({check} for {item} in {name})"
        return f"({fast} or {name} is None)"

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        item = scope.variable()
        source = self.elem_type._canonical_source(item, item, scope)
        if source is None or source == ALWAYS:
            return source
        # None must not reach all(): the parent tests for it only after this.
        return f"{first} is not None and all(({source} or {item} is None) for {item} in {name})"

    def _slow_converter(self) -> Callable[[Any], Any]:
        make = self.elem_type.converter()
        if make is None:
            return super()._slow_converter()
        return lambda value: None if value is None else [make(item) for item in value]

    def _nested_formatter(self) -> Callable[[Any], str]:
        show = self.elem_type._nested_formatter()
        return lambda value: "null" if value is None else f"[{', '.join([show(item) for item in value])}]"

    def _key(self) -> Hashable:
        return self.elem_type

    def __repr__(self) -> str:
        return f"{self._name}<{self.elem_type}>"


class PrimitiveArrayTypeInfo(ListTypeInfo):
    """PRIMITIVE_ARRAY: a list of numbers or truth values; for BYTE it is ``bytes``.

    ``print()`` shows the elements, where Java would show an address.

    >>> from firesteel.common.typeinfo import Types
    >>> raw = Types.PRIMITIVE_ARRAY(Types.BYTE())
    >>> raw.converter()(bytearray(b"ab")), raw.formatter()(b"a\\xff")
    (b'ab', '[97, -1]')
    """

    _name = "PRIMITIVE_ARRAY"

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        if not isinstance(element_type, BasicTypeInfo) or element_type.kind not in _PRIMITIVES:
            raise ProgramError(f"PRIMITIVE_ARRAY holds numbers, characters or truth values, got {element_type}.")
        self._is_bytes = element_type.kind is BasicType.BYTE

    @property
    def is_bytes(self) -> bool:
        """Whether values are ``bytes``.

        >>> from firesteel.common.typeinfo import Types
        >>> Types.PRIMITIVE_ARRAY(Types.BYTE()).is_bytes, Types.PRIMITIVE_ARRAY(Types.INT()).is_bytes
        (True, False)
        """
        return self._is_bytes

    def explain(self, value: Any) -> str | None:
        if self._is_bytes:
            return None if value is None or isinstance(value, bytes | bytearray) else expected(self, value)
        return super().explain(value)

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        if self._is_bytes:
            return f"(type({first}) is bytes or {name} is None or isinstance({name}, (bytes, bytearray)))"
        return super()._check_source(first, name, scope)

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        if self._is_bytes:
            return f"type({first}) is bytes"
        return super()._canonical_source(first, name, scope)

    def _slow_converter(self) -> Callable[[Any], Any]:
        return _to_bytes if self._is_bytes else super()._slow_converter()

    def _nested_formatter(self) -> Callable[[Any], str]:
        return _bytes_text if self._is_bytes else super()._nested_formatter()


class BasicArrayTypeInfo(ListTypeInfo):
    """BASIC_ARRAY: a list of numbers, truth values or strings."""

    _name = "BASIC_ARRAY"

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        if not isinstance(element_type, BasicTypeInfo) or element_type.kind not in _BOXED:
            raise ProgramError(
                f"BASIC_ARRAY holds numbers, strings or truth values, got {element_type}. "
                f"Use OBJECT_ARRAY or LIST for other elements."
            )


class ObjectArrayTypeInfo(ListTypeInfo):
    """OBJECT_ARRAY: a list of elements of any one type."""

    _name = "OBJECT_ARRAY"


class MapTypeInfo(TypeInformation):
    """MAP: a dict with keys of one type and values of another.

    >>> from firesteel.common.typeinfo import Types
    >>> Types.MAP(Types.STRING(), Types.DOUBLE()).formatter()({"a": 1.0})
    '{a=1.0}'
    """

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        for part, given in (("keys", key_type_info), ("values", value_type_info)):
            if not isinstance(given, TypeInformation):
                raise ProgramError(
                    f"MAP needs the type of its {part}, such as Types.STRING(), got {short_repr(given, 80)}."
                )
        self._key_type_info = key_type_info
        self._value_type_info = value_type_info

    def get_key_type_info(self) -> TypeInformation:
        """The type of the keys.

        >>> from firesteel.common.typeinfo import Types
        >>> Types.MAP(Types.STRING(), Types.DOUBLE()).get_key_type_info()
        STRING
        """
        return self._key_type_info

    def get_value_type_info(self) -> TypeInformation:
        """The type of the values."""
        return self._value_type_info

    def explain(self, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            return expected(self, value)
        for key, item in value.items():
            text = self._key_type_info.explain(key)
            if text is not None:
                return f"key {short_repr(key, 60)} of {self}: {text}"
            text = self._value_type_info.explain(item)
            if text is not None:
                return f"value under {short_repr(key, 60)} of {self}: {text}"
        return None

    def _check_source(self, first: str, name: str, scope: Scope) -> str | None:
        key, item = scope.variable(), scope.variable()
        sources = (
            self._key_type_info._check_source(key, key, scope),
            self._value_type_info._check_source(item, item, scope),
        )
        checks = " and ".join(source for source in sources if source is not None)
        fast = f"isinstance({first}, dict)"
        if checks:
            fast += f" and all({checks} for {key}, {item} in {name}.items())"
        return f"({fast} or {name} is None)"

    def _canonical_source(self, first: str, name: str, scope: Scope) -> str | None:
        key, item = scope.variable(), scope.variable()
        tests = []
        for part, variable in ((self._key_type_info, key), (self._value_type_info, item)):
            source = part._canonical_source(variable, variable, scope)
            if source is None:
                return None
            if source != ALWAYS:
                tests.append(f"({source} or {variable} is None)")
        if not tests:
            return ALWAYS
        return f"{first} is not None and all({' and '.join(tests)} for {key}, {item} in {name}.items())"

    def _slow_converter(self) -> Callable[[Any], Any]:
        make_key = self._key_type_info.converter() or _same
        make_value = self._value_type_info.converter() or _same

        def to_dict(value: Any) -> Any:
            if value is None:
                return None
            return {make_key(key): make_value(item) for key, item in value.items()}

        return to_dict

    def _nested_formatter(self) -> Callable[[Any], str]:
        show_key, show = self._key_type_info._nested_formatter(), self._value_type_info._nested_formatter()

        def text(value: Any) -> str:
            if value is None:
                return "null"
            return f"{{{', '.join([f'{show_key(key)}={show(item)}' for key, item in value.items()])}}}"

        return text

    def _key(self) -> Hashable:
        return self._key_type_info, self._value_type_info

    def __repr__(self) -> str:
        return f"MAP<{self._key_type_info}, {self._value_type_info}>"


_PRIMITIVES = frozenset(
    (
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
        BasicType.FLOAT,
        BasicType.DOUBLE,
        BasicType.CHAR,
    )
)
_BOXED = _PRIMITIVES | {BasicType.STRING}


def _same(value: Any) -> Any:
    return value


def _to_bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _bytes_text(value: bytes | None) -> str:
    """Bytes are signed in Java."""
    if value is None:
        return "null"
    return f"[{', '.join([str(byte - 256 if byte > 127 else byte) for byte in value])}]"
