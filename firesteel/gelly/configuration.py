"""How an iteration runs: its aggregators, what all functions may read, and when lineage is cut."""

from __future__ import annotations

import copy
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame

from firesteel.errors import ProgramError, short_repr
from firesteel.gelly.failures import user_errors
from firesteel.gelly.supersteps import Checkpoints

__all__ = [
    "Aggregator",
    "DoubleMaxAggregator",
    "DoubleMinAggregator",
    "DoubleSumAggregator",
    "IterationConfiguration",
    "LongMaxAggregator",
    "LongMinAggregator",
    "LongSumAggregator",
]


class Aggregator(ABC):
    """Puts together what functions give it during a superstep; in the next one all of them can read the result.

    Each block has an aggregator of its own. Their results are put together by one more, so ``aggregate`` has to take
    results, too. One of your own has these three methods.
    """

    @abstractmethod
    def reset(self) -> None:
        """Begins a superstep."""

    @abstractmethod
    def aggregate(self, value: Any) -> None: ...

    @abstractmethod
    def get_aggregate(self) -> Any: ...


class _FoldAggregator(Aggregator):
    _start: Any
    _fold: Any

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._value = self._start

    def aggregate(self, value: Any) -> None:
        self._value = self._fold(self._value, value)

    def get_aggregate(self) -> Any:
        return self._value


class LongSumAggregator(_FoldAggregator):
    """Adds up whole numbers.

    >>> total = LongSumAggregator()
    >>> for value in (1, 2, 3):
    ...     total.aggregate(value)
    >>> total.get_aggregate()
    6
    """

    _start = 0
    _fold = staticmethod(operator.add)


class DoubleSumAggregator(_FoldAggregator):
    """Adds up numbers."""

    _start = 0.0
    _fold = staticmethod(operator.add)


class LongMaxAggregator(_FoldAggregator):
    """The largest of whole numbers."""

    _start = -(1 << 63)
    _fold = staticmethod(max)


class LongMinAggregator(_FoldAggregator):
    """The smallest of whole numbers."""

    _start = (1 << 63) - 1
    _fold = staticmethod(min)


class DoubleMaxAggregator(_FoldAggregator):
    """The largest of numbers."""

    _start = float("-inf")
    _fold = staticmethod(max)


class DoubleMinAggregator(_FoldAggregator):
    """The smallest of numbers."""

    _start = float("inf")
    _fold = staticmethod(min)


class IterationConfiguration:
    """What all kinds of iterations can be told.

    >>> parameters = IterationConfiguration()
    >>> parameters.set_name("distances")
    >>> parameters.register_aggregator("changed", LongSumAggregator())
    >>> parameters.get_name("iteration")
    'distances'
    """

    def __init__(self) -> None:
        self._name: str | None = None
        self._parallelism: int | None = None
        self._aggregators: dict[str, Aggregator] = {}
        self._broadcast: dict[str, DataFrame | list[Any]] = {}
        self._checkpoints = Checkpoints()
        self._number_of_vertices = False
        self._degrees = False

    def set_name(self, name: str) -> None:
        """The name of the iteration's jobs in Spark's web page."""
        self._name = name

    def get_name(self, default: str) -> str:
        return self._name or default

    def set_parallelism(self, parallelism: int) -> None:
        """Into how many blocks the graph is cut, each of which has to fit into the memory of a Python worker."""
        if parallelism < 1:
            raise ProgramError(f"The parallelism of an iteration should be at least 1, got {parallelism}.")
        self._parallelism = parallelism

    def get_parallelism(self) -> int | None:
        return self._parallelism

    def register_aggregator(self, name: str, aggregator: Aggregator) -> None:
        """Functions find it with ``get_iteration_aggregator(name)``."""
        if not isinstance(aggregator, Aggregator):
            raise ProgramError(f"Aggregator {name!r} should be an Aggregator, got {short_repr(aggregator)}.")
        self._aggregators[name] = aggregator

    def add_broadcast_set(self, name: str, data: DataFrame | Iterable[Any]) -> None:
        """Functions find these rows with ``get_broadcast_set(name)``. They have to fit into memory."""
        self._broadcast[name] = data if isinstance(data, DataFrame) else list(data)

    def set_opt_num_vertices(self, wanted: bool) -> None:
        """Whether functions may ask for the number of vertices."""
        self._number_of_vertices = wanted

    def set_reliable_checkpoints(self, reliable: bool) -> None:
        """Whether supersteps are saved in the folder of ``SparkContext.setCheckpointDir`` every now and then.

        Lineage is cut after every superstep, in the memory and on the disks of executors. When an executor is lost,
        the iteration goes on from what was saved; without it, it fails.
        """
        self._checkpoints = Checkpoints(self._checkpoints.interval, reliable)

    def set_checkpoint_interval(self, supersteps: int) -> None:
        """After how many supersteps one is saved; 10 unless told otherwise."""
        if supersteps < 1:
            raise ProgramError(f"A superstep is saved every 1, 2, … supersteps, got {supersteps}.")
        self._checkpoints = Checkpoints(supersteps, self._checkpoints.reliable)

    # For the iterations

    def new_aggregators(self) -> dict[str, Aggregator]:
        made = copy.deepcopy(self._aggregators)
        for aggregator in made.values():
            aggregator.reset()
        return made

    def collect_broadcast_sets(self) -> dict[str, list[Any]]:
        with user_errors():
            return {n: d.collect() if isinstance(d, DataFrame) else d for n, d in self._broadcast.items()}

    @property
    def checkpoints(self) -> Checkpoints:
        return self._checkpoints

    @property
    def wants_degrees(self) -> bool:
        return self._degrees

    @property
    def wants_number_of_vertices(self) -> bool:
        return self._number_of_vertices
