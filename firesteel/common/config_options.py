"""Options: a key with the type of its values and a default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A key, the type of its values and a default, which is None if there is none."""

    key: str
    value_type: type
    default: T | None = None


class ConfigOptions:
    """Where options come from.

    >>> ConfigOptions.key("parallelism.default").int_type().default_value(1)
    ConfigOption(key='parallelism.default', value_type=<class 'int'>, default=1)
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Starts an option."""
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """Takes the type of an option's values."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """True or False."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Whole numbers."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Whole numbers."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Numbers."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Numbers."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Text."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, str)

    class TypedConfigOptionBuilder(Generic[T]):
        """Takes the default of an option."""

        def __init__(self, key: str, value_type: type) -> None:
            self._key = key
            self._value_type = value_type

        def default_value(self, value: T) -> ConfigOption[T]:
            """The option with a default."""
            return ConfigOption(self._key, self._value_type, value)

        def no_default_value(self) -> ConfigOption[Any]:
            """The option without a default."""
            return ConfigOption(self._key, self._value_type)
