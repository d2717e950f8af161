"""Settings by key. Every key is accepted; whoever reads one says what kind of value it expects."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from firesteel.common.older_keys import OLDER_KEYS
from firesteel.common.parsing import parse_duration_ms, parse_memory_bytes
from firesteel.common.secret import is_secret_key
from firesteel.common.type_system.javatext import java_double
from firesteel.errors import ConfigurationError, short_repr

__all__ = ["Configuration", "parse_duration_ms", "parse_memory_bytes"]

Value = str | int | float | bool | bytes

D = TypeVar("D")
"""The type of a default: reading gives that, or the type asked for."""


class Configuration:
    """Settings by key.

    A value keeps the type it was set with and can be read as another, if its text allows. The text of a configuration
    shows no secrets: values of keys that have ``password``, ``secret``, ``token`` or the like in them are stars.

    Reading a key that Flink has renamed finds what was set under an older name of it.

    >>> config = Configuration().set_string("parallelism.default", "4")
    >>> _ = config.set_boolean("pipeline.object-reuse", True)
    >>> config.get_integer("parallelism.default", 1), config.get_string("pipeline.object-reuse", "")
    (4, 'true')
    >>> config.get_integer("pipeline.object-reuse", 1)
    Traceback (most recent call last):
    firesteel.errors.ConfigurationError: Setting 'pipeline.object-reuse' should be a whole number, got 'true'.
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Value] = {} if other is None else dict(other._values)

    @classmethod
    def from_dict(cls, map: Mapping[str, str]) -> Configuration:
        """A configuration with the entries of a mapping."""
        config = cls()
        for key, value in map.items():
            config.set_string(key, value)
        return config

    @classmethod
    def from_file(cls, path: str | Path) -> Configuration:
        """The settings of a ``config.yaml``, of an older ``flink-conf.yaml``, or of a folder with one.

        Values keep their spelling: ``yes`` stays ``yes`` and ``1.10`` stays ``1.10`` until somebody reads
        them as something else.
        """
        path = Path(path)
        if path.is_dir():
            found = [path / name for name in ("config.yaml", "flink-conf.yaml") if (path / name).is_file()]
            if not found:
                raise ConfigurationError(f"No config.yaml and no flink-conf.yaml in the folder {path}.")
            path = found[0]
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"Cannot read the configuration file {path}: {error.strerror}.") from error
        return cls.from_dict(_parse_yaml(text, path))

    # -- writing --------------------------------------------------------------------------------------------

    def set_string(self, key: str, value: str) -> Configuration:
        """Sets a text."""
        return self._set(key, value, str, "a string")

    def set_integer(self, key: str, value: int) -> Configuration:
        """Sets a whole number."""
        return self._set(key, value, int, "a whole number")

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Sets a truth value."""
        return self._set(key, value, bool, "True or False")

    def set_float(self, key: str, value: float) -> Configuration:
        """Sets a number."""
        return self._set(key, float(value), float, "a number")

    def set_bytearray(self, key: str, value: bytearray | bytes) -> Configuration:
        """Sets bytes."""
        return self._set(key, bytes(value), bytes, "bytes")

    def _set(self, key: str, value: Value, kind: type, wanted: str) -> Configuration:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            got = f"{type(value).__name__} {'***' if is_secret_key(key) else short_repr(value, 60)}"
            raise ConfigurationError(f"Setting '{key}' takes {wanted} here, got {got}.")
        self._values[key] = value
        return self

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Takes over all settings of another configuration, with a prefix before their keys if given."""
        for key, value in other._values.items():
            self._values[key if prefix is None else prefix + key] = value
        return self

    def remove_config(self, key: str) -> bool:
        """Removes a setting; says whether there was one."""
        return self._values.pop(key, None) is not None

    # -- reading --------------------------------------------------------------------------------------------

    def get_string(self, key: str, default_value: D) -> str | D:
        """The setting as text."""
        key = self.find_key(key)
        return _text(self._values[key]) if key in self._values else default_value

    def get_integer(self, key: str, default_value: D) -> int | D:
        """The setting as a whole number."""
        key = self.find_key(key)
        if key not in self._values:
            return default_value
        text = _text(self._values[key])
        try:
            return int(text.strip())
        except ValueError:
            raise _unreadable(key, "a whole number", text) from None

    def get_boolean(self, key: str, default_value: D) -> bool | D:
        """The setting as a truth value: ``true`` or ``false`` in any case."""
        key = self.find_key(key)
        if key not in self._values:
            return default_value
        text = _text(self._values[key])
        answer = {"true": True, "false": False}.get(text.strip().lower())
        if answer is None:
            raise _unreadable(key, "true or false", text)
        return answer

    def get_float(self, key: str, default_value: D) -> float | D:
        """The setting as a number."""
        key = self.find_key(key)
        if key not in self._values:
            return float(default_value) if isinstance(default_value, int) else default_value
        text = _text(self._values[key])
        try:
            return float(text)
        except ValueError:
            raise _unreadable(key, "a number", text) from None

    def get_bytearray(self, key: str, default_value: bytearray | bytes) -> bytearray:
        """The setting as bytes."""
        value = self._values.get(key, default_value)
        if not isinstance(value, bytes | bytearray):
            raise _unreadable(key, "bytes", _text(value))
        return bytearray(value)

    def get_duration_ms(self, key: str, default_value: int | str) -> int:
        """The setting as a duration in milliseconds, from texts such as ``10 s``.

        >>> Configuration().set_string("execution.checkpointing.interval", "3 min").get_duration_ms(
        ...     "execution.checkpointing.interval", 0)
        180000
        """
        key = self.find_key(key)
        text = self.get_string(key, None)
        try:
            return parse_duration_ms(default_value if text is None else text)
        except ConfigurationError as error:
            raise ConfigurationError(f"Setting '{key}': {error}") from None

    def get_memory_bytes(self, key: str, default_value: int | str) -> int:
        """The setting as a memory size in bytes, from texts such as ``64 mb``."""
        key = self.find_key(key)
        text = self.get_string(key, None)
        try:
            return parse_memory_bytes(default_value if text is None else text)
        except ConfigurationError as error:
            raise ConfigurationError(f"Setting '{key}': {error}") from None

    def find_key(self, key: str) -> str:
        """The key under which a setting is there: this one, or an older name of it."""
        if key in self._values:
            return key
        return next((older for older in OLDER_KEYS.get(key, ()) if older in self._values), key)

    def contains_key(self, key: str) -> bool:
        """Whether there is such a setting."""
        return key in self._values

    def key_set(self) -> set[str]:
        """All keys."""
        return set(self._values)

    def to_dict(self) -> dict[str, str]:
        """All settings as text."""
        return {key: _text(value) for key, value in self._values.items()}

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Adds all settings to a dict, with the types they were set with."""
        target_dict.update(self._values)

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """The elements of a list written as ``a;b`` or ``[a, b]``.

        >>> Configuration.parse_list_value("a;b"), Configuration.parse_list_value("[a, b]")
        (['a', 'b'], ['a', 'b'])
        """
        if not value:
            return []
        try:
            parsed = yaml.load(value, Loader=yaml.BaseLoader)
        except yaml.YAMLError:
            parsed = None
        return parsed if isinstance(parsed, list) else value.split(";")

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return copy.copy(self)

    def __copy__(self) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        # 1, 1.0 and True are equal in Python but not the same setting.
        return self._values == other._values and all(
            type(value) is type(other._values[key]) for key, value in self._values.items()
        )

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __str__(self) -> str:
        shown = [f"{key}={'***' if is_secret_key(key) else text}" for key, text in sorted(self.to_dict().items())]
        return f"{{{', '.join(shown)}}}"

    def __repr__(self) -> str:
        return f"Configuration({self})"


def _text(value: Value | bytearray) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, bytes | bytearray):
        return f"!!binary {base64.b64encode(value).decode()}"
    return str(value)


def _unreadable(key: str, wanted: str, text: str) -> ConfigurationError:
    return ConfigurationError(f"Setting '{key}' should be {wanted}, got {'***' if is_secret_key(key) else repr(text)}.")


def _parse_yaml(text: str, path: Path) -> dict[str, str]:
    """The settings of a file, nested keys joined with dots.

    The old files look like YAML but are not: a value may hold ``: `` or start with ``%``. They are read line
    by line, and so is whatever else is no YAML.
    """
    try:
        tree = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        flat = _parse_flat(text)
        if flat is None:
            raise ConfigurationError(f"The configuration file {path} is not valid YAML: {error}") from error
        return flat
    if tree in (None, ""):
        return {}
    if not isinstance(tree, dict):
        raise ConfigurationError(
            f"The configuration file {path} should hold 'key: value' lines, got a {type(tree).__name__}."
        )
    settings: dict[str, str] = {}
    _flatten(tree, "", settings)
    return settings


def _parse_flat(text: str) -> dict[str, str] | None:
    settings = {}
    for line in text.splitlines():
        content = line.split("#", 1)[0].strip()
        if not content:
            continue
        key, separator, value = content.partition(": ")
        if not separator or line[0].isspace():
            return None
        settings[key.strip()] = value.strip()
    return settings


def _flatten(tree: dict[str, Any], prefix: str, settings: dict[str, str]) -> None:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            _flatten(value, f"{prefix}{key}.", settings)
        elif isinstance(value, list):
            settings[prefix + key] = yaml.safe_dump(value, default_flow_style=True, width=10**9).strip()
        else:
            settings[prefix + key] = "" if isinstance(value, dict) else value
