"""Two streams connected: one function sees both, and shares its state between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from firesteel.datastream.operators import operator_of
from firesteel.errors import ProgramError, short_repr
from firesteel.graph.specs import (
    CoFlatMapSpec,
    CoMapSpec,
    CoProcessSpec,
    KeyedCoProcessSpec,
    OperatorSpec,
    TransformSpec,
)
from firesteel.graph.transformations import Ship

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream

__all__ = ["ConnectedStreams", "two_input_stream"]


class ConnectedStreams:
    """Two streams, possibly of different types, on the way to one function.

    >>> from firesteel.datastream import CoMapFunction, StreamExecutionEnvironment
    >>> class Label(CoMapFunction):
    ...     def map1(self, value):
    ...         return "word", value
    ...     def map2(self, value):
    ...         return "number", value
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> connected = env.from_collection(["a"]).connect(env.from_collection([1]))
    >>> connected.map(Label()).get_name()
    'Co-Map'
    """

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        if stream1._env is not stream2._env:
            raise ProgramError("Streams of different environments cannot be connected.")
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams:
        """Partitions both streams by key: records of one key, from either stream, meet in one subtask."""
        return ConnectedStreams(
            self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type)
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """One record out for each one in; nothing where the function returns None."""
        self._expect("map", func, CoMapFunction)
        return self._add("Co-Map", CoMapSpec(func, self._keyed()), output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of records out for each one in."""
        self._expect("flat_map", func, CoFlatMapFunction)
        return self._add("Co-Flat Map", CoFlatMapSpec(func, self._keyed()), output_type)

    def process(
        self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Applies a process function. It has the key's state and timers where both streams are keyed."""
        self._expect("process", func, CoProcessFunction, KeyedCoProcessFunction)
        if self._keyed():
            return self._add("Keyed Co-Process", KeyedCoProcessSpec(func), output_type)
        if isinstance(func, KeyedCoProcessFunction):
            raise ProgramError(
                "A KeyedCoProcessFunction needs two keyed streams. Call key_by() of the connected streams, or of "
                "both streams before connect()."
            )
        return self._add("Co-Process", CoProcessSpec(func), output_type)

    def transform(self, name: str, spec: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Applies an operator of a library, or of your own, with two inputs: see :meth:`DataStream.transform`.

        It has keyed state where both streams are keyed, or one is: then a record of the other one has no key. Where a
        stream is broadcast, its records come before the other ones of a batch.
        """
        streams = (self.stream1, self.stream2)
        self._keyed()
        broadcast = frozenset(i for i, stream in enumerate(streams) if stream._partitioning.ship is Ship.BROADCAST)
        keyed = any(stream._is_keyed for stream in streams)
        return self._add(name, TransformSpec(spec, operator_of(spec), keyed, broadcast), output_type)

    def _keyed(self) -> bool:
        """Whether both streams are keyed. One alone gives no state: a record of the other one has no key."""
        if not (self.stream1._is_keyed and self.stream2._is_keyed):
            return False
        types = self.stream1._key_type, self.stream2._key_type
        if None not in types and types[0] != types[1]:
            raise ProgramError(
                f"The keys of connected streams must be of one type, these are {types[0]} and {types[1]}. Let both key "
                "selectors return the same."
            )
        return True

    @staticmethod
    def _expect(method: str, func: Any, *contracts: type) -> None:
        if isinstance(func, contracts):
            return
        names = " or ".join(contract.__name__ for contract in contracts)
        if isinstance(func, type):
            raise ProgramError(
                f"{method}() of connected streams takes an instance of {names}, got the class {func.__name__} itself. "
                f"Pass an instance: {func.__name__}()."
            )
        raise ProgramError(
            f"{method}() of connected streams takes an instance of {names}, got {type(func).__name__} "
            f"{short_repr(func, 80)}. It needs one method for each of the two streams."
        )

    def _add(self, name: str, spec: OperatorSpec, output_type: TypeInformation | None) -> DataStream:
        return two_input_stream(self.stream1, self.stream2, name, spec, output_type)


def two_input_stream(
    stream1: DataStream, stream2: DataStream, name: str, spec: OperatorSpec, output_type: TypeInformation | None
) -> DataStream:
    """The result of an operator whose first input is one stream and whose second input is another."""
    return stream1._add(name, spec, output_type, [stream1._edge(), replace(stream2._edge(), ordinal=1)])
