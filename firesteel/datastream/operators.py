"""The contract of operators that a library, or a program, brings itself: see ``DataStream.transform``.

An operator is two classes. The *spec* says what is to be done: plain data, best a frozen dataclass. The *operator*
does it, in every subtask. :func:`handles` joins the two::

    @dataclass(frozen=True)
    class Deduplicate:
        state: str

    @handles(Deduplicate)
    class DeduplicateOperator(StreamOperator[Deduplicate]): ...

    stream.key_by(...).transform("Deduplicate", Deduplicate("seen"))

The job takes the operator's class along with the spec, so a worker needs no registry: whatever module the class is in
is imported there, and a class of a script travels by value, as functions do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from inspect import isroutine
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.functions import Function, RuntimeContext
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService
from firesteel.errors import ProgramError, short_repr

__all__ = ["Records", "StreamOperator", "StreamOperatorContext", "handles", "operator_of"]

Spec = TypeVar("Spec")
OperatorClass = TypeVar("OperatorClass", bound="type[StreamOperator[Any]]")


class Records(NamedTuple):
    """Some records of one input, in their order. The lists belong to the operator that gets them.

    >>> Records(["a", "b"]).timestamps is None
    True
    """

    values: list[Any]
    timestamps: list[int] | None = None
    """The event time of each record in milliseconds; None where the stream has none."""
    keys: list[Any] | None = None
    """The key of each record; None where the input is not keyed."""
    input: int = 0
    """Which input they came from: 0, or 1 for the second of two connected streams."""


class StreamOperatorContext(RuntimeContext):
    """What an operator may ask and do: all of a function's runtime context, the current key, timers, and output."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Time, and on keyed streams timers of the current key."""

    @abstractmethod
    def set_current_key(self, key: Any) -> None:
        """From now on states and timers are this key's. Before a record is processed, and wherever an operator turns
        to another key."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """The key that states and timers belong to now."""

    @abstractmethod
    def prepare_keys(self, keys: Collection[Any]) -> None:
        """Reads the states of several keys at once. The keys of records and timers are prepared; for others it saves
        reading them one by one."""

    @abstractmethod
    def emit(self, values: list[Any], timestamps: list[int] | None = None) -> None:
        """Sends records on, with a timestamp each or with none."""

    @abstractmethod
    def emit_to(self, output_tag: OutputTag, values: list[Any], timestamps: list[int] | None = None) -> None:
        """Sends records to a side output."""


class StreamOperator(Function, Generic[Spec]):
    """One operator in one subtask, made from its spec.

    It works on lists of records: what a loop in C can do for all of them costs little. Mix in
    :class:`~firesteel.datastream.functions.CheckpointedFunction` for state that belongs to no key.

    >>> from dataclasses import dataclass
    >>> from firesteel.datastream import StreamExecutionEnvironment
    >>> @dataclass(frozen=True)
    ... class Scale:
    ...     factor: int
    >>> @handles(Scale)
    ... class ScaleOperator(StreamOperator[Scale]):
    ...     def process(self, records):
    ...         scaled = [value * self.spec.factor for value in records.values]
    ...         self.context.emit(scaled, records.timestamps)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.from_collection([1, 2]).transform("Scale", Scale(10)).get_name()
    'Scale'
    """

    context: StreamOperatorContext
    """Set before ``open``."""

    sees_watermarks: ClassVar[bool] = False
    """Whether the class overrides ``on_watermark``; set for every subclass."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.sees_watermarks = cls.on_watermark is not StreamOperator.on_watermark

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @abstractmethod
    def process(self, records: Records) -> None:
        """Records came in. On a keyed stream call ``set_current_key`` before states or timers are used."""

    def on_timer(self, timestamp: int, domain: TimeDomain) -> None:
        """A timer fires. The current key is the one that it was set for."""

    def on_watermark(self, watermark: int) -> None:
        """Event time came to ``watermark``: its timers have fired, and what is emitted here still goes out before it.

        When all input has ended it comes to 2^63 - 1. In BATCH mode a keyed operator has all its records between this
        last watermark and the one before it, one key after the other."""

    def output_watermark(self, watermark: int) -> int:
        """The watermark that others see when this operator has come to ``watermark``: an earlier one, if results may
        have earlier times. It never goes back. 2^63 - 1 is the end of all input and stays what it is."""
        return watermark

    def end_batch(self) -> None:
        """All records of a micro-batch were processed. What is emitted here goes out behind the batch's watermark."""


_OPERATORS: dict[type, type[StreamOperator[Any]]] = {}


def handles(*specs: type) -> Callable[[OperatorClass], OperatorClass]:
    """Registers the decorated operator for these classes of specs."""
    for spec in specs:
        if not isinstance(spec, type):
            raise ProgramError(f"handles() takes classes of specs, got {short_repr(spec, 60)}.")

    def register(operator: OperatorClass) -> OperatorClass:
        if not (isinstance(operator, type) and issubclass(operator, StreamOperator)):
            raise ProgramError(f"handles() decorates a subclass of StreamOperator, got {short_repr(operator, 60)}.")
        for spec in specs:
            _OPERATORS[spec] = operator
        return operator

    return register


def operator_of(spec: Any) -> type[StreamOperator[Any]]:
    """The operator that runs a spec: the one registered for its class, or for the nearest of its base classes."""
    for kind in type(spec).__mro__:
        if kind in _OPERATORS:
            return _OPERATORS[kind]
    if isinstance(spec, type) and any(kind in _OPERATORS for kind in spec.__mro__):
        raise ProgramError(f"transform() takes a spec, got the class {spec.__name__} itself. Pass an instance.")
    if spec is None or isinstance(spec, (str, bytes, int, float, TypeInformation)) or isroutine(spec):
        # Not the advice below: nobody registers an operator for all texts, types or functions.
        raise ProgramError(
            f"transform() takes a name, a spec, and the type of what comes out; as spec it got {short_repr(spec, 60)}. "
            "A spec is an object of a class of your own, best a frozen dataclass, that says what an operator has to "
            "do: see firesteel.datastream.operators. Plain functions belong to map(), flat_map() or process()."
        )
    name = type(spec).__name__
    raise ProgramError(
        f"No operator is known for {name} {short_repr(spec, 60)}. Decorate the operator that runs it with "
        f"@handles({name}), and import its module before transform() is called."
    )
