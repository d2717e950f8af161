"""Descriptors: the name and type under which a function asks for its state.

A descriptor is set up once and then travels with the function. The name identifies the state across restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.functions.basic import AggregateFunction, ReduceFunction
from firesteel.datastream.functions.wrappers import as_reduce
from firesteel.datastream.state.ttl import StateTtlConfig
from firesteel.errors import ProgramError, short_repr

__all__ = [
    "AggregatingStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "ValueStateDescriptor",
]


class StateDescriptor:
    """What all descriptors share: a name, a type and, if asked for, a time to live.

    Two descriptors are equal if they are of one kind and agree in name and type.
    """

    def __init__(self, name: str, type_info: TypeInformation) -> None:
        if not isinstance(name, str) or not name:
            raise ProgramError(f"A state needs a name that is a non-empty string, got {short_repr(name, 60)}.")
        if "\0" in name:
            # It separates names from each other in the store.
            raise ProgramError(f"The name of a state must not contain the character 0, got {short_repr(name, 60)}.")
        self.name = name
        self.type_info = _checked(name, type_info)
        self._ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """The name of the state."""
        return self.name

    @property
    def ttl_config(self) -> StateTtlConfig | None:
        """How long values live, or None for ever."""
        return self._ttl_config

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Lets values expire."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise ProgramError(
                f"enable_time_to_live() of state '{self.name}' needs a StateTtlConfig, "
                f"got {type(ttl_config).__name__}. "
                f"Build one with StateTtlConfig.new_builder(Time.hours(1)).build()."
            )
        self._ttl_config = ttl_config

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateDescriptor):
            return NotImplemented
        return type(self) is type(other) and self.name == other.name and self.type_info == other.type_info

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info})"


class ValueStateDescriptor(StateDescriptor):
    """Describes a :class:`ValueState`.

    >>> ValueStateDescriptor("count", Types.LONG())
    ValueStateDescriptor('count', LONG)
    """

    def __init__(self, name: str, value_type_info: TypeInformation) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """Describes a :class:`ListState`; its ``type_info`` is that of the list.

    >>> ListStateDescriptor("seen", Types.STRING()).type_info
    LIST<STRING>
    """

    def __init__(self, name: str, elem_type_info: TypeInformation) -> None:
        self.elem_type_info = _checked(name, elem_type_info)
        super().__init__(name, Types.LIST(elem_type_info))


class MapStateDescriptor(StateDescriptor):
    """Describes a :class:`MapState` or a broadcast state; its ``type_info`` is that of the map.

    >>> MapStateDescriptor("rules", Types.STRING(), Types.INT()).type_info
    MAP<STRING, INT>
    """

    def __init__(self, name: str, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self.key_type_info = _checked(name, key_type_info)
        self.value_type_info = _checked(name, value_type_info)
        super().__init__(name, Types.MAP(key_type_info, value_type_info))


class ReducingStateDescriptor(StateDescriptor):
    """Describes a :class:`ReducingState` with the function that folds values.

    >>> ReducingStateDescriptor("max", max, Types.INT()).get_reduce_function().reduce(2, 7)
    7
    """

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction | Callable[[Any, Any], Any],
        type_info: TypeInformation,
    ) -> None:
        super().__init__(name, type_info)
        self._reduce_function = as_reduce(reduce_function)

    def get_reduce_function(self) -> ReduceFunction:
        """The function that folds values."""
        return self._reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Describes an :class:`AggregatingState`; its ``type_info`` is that of the accumulator."""

    def __init__(self, name: str, agg_function: AggregateFunction, state_type_info: TypeInformation) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            hint = ""
            if isinstance(agg_function, type) and issubclass(agg_function, AggregateFunction):
                hint = f" Pass an instance: {agg_function.__name__}()."
            raise ProgramError(f"State '{name}' needs an AggregateFunction, got {short_repr(agg_function, 80)}.{hint}")
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        """The function that folds values."""
        return self._agg_function


def _checked(name: str, type_info: TypeInformation) -> TypeInformation:
    """The type as given; an error if it is none, which is what forgetting the parentheses gives."""
    if isinstance(type_info, TypeInformation):
        return type_info
    called = getattr(type_info, "__name__", None)
    hint = f" Did you mean Types.{called}()?" if called and hasattr(Types, called) else ""
    raise ProgramError(f"State '{name}' needs a type such as Types.LONG(), got {short_repr(type_info, 80)}.{hint}")
