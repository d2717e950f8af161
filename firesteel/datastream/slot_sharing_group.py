"""Slot sharing groups: which operators run in the same slot, and what that slot should offer.

Spark places tasks by itself, so the resources are remembered and shown, not enforced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from firesteel.errors import ProgramError

__all__ = ["MemorySize", "SlotSharingGroup"]

_UNITS = (("tb", 1 << 40), ("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10))


@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes.

    >>> print(MemorySize.of_mebi_bytes(64), MemorySize(1500))
    64 mb 1500 bytes
    """

    bytes_size: int

    def __post_init__(self) -> None:
        if self.bytes_size < 0:
            raise ProgramError(f"A memory size cannot be negative, got {self.bytes_size} bytes.")

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """That many times 2^20 bytes."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """The size in bytes."""
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """The size in units of 2^10 bytes, rounded down."""
        return self.bytes_size >> 10

    def get_mebi_bytes(self) -> int:
        """The size in units of 2^20 bytes, rounded down."""
        return self.bytes_size >> 20

    def get_gibi_bytes(self) -> int:
        """The size in units of 2^30 bytes, rounded down."""
        return self.bytes_size >> 30

    def get_tebi_bytes(self) -> int:
        """The size in units of 2^40 bytes, rounded down."""
        return self.bytes_size >> 40

    def __str__(self) -> str:
        for unit, size in _UNITS:
            if self.bytes_size and self.bytes_size % size == 0:
                return f"{self.bytes_size // size} {unit}"
        return f"{self.bytes_size} bytes"


@dataclass(frozen=True)
class SlotSharingGroup:
    """A named group of operators, optionally with the resources of its slots.

    >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(2.0).set_task_heap_memory_mb(512).build()
    >>> group.get_name(), group.get_cpu_cores(), str(group.get_task_heap_memory())
    ('heavy', 2.0, '512 mb')
    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: Mapping[str, float] = field(default_factory=dict, hash=False)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """A builder for a group of that name."""
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        """The group's name."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """CPU cores of a slot, or None if unspecified."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """Heap memory of a slot, or None if unspecified."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Off-heap memory of a slot, or None if unspecified."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """Managed memory of a slot, or None if unspecified."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Other resources of a slot, such as GPUs, by name."""
        return dict(self.external_resources)

    class Builder:
        """Builds a :class:`SlotSharingGroup` step by step."""

        def __init__(self, name: str) -> None:
            self._name = name
            self._cpu_cores: float | None = None
            self._memory: dict[str, MemorySize] = {}
            self._external_resources: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Sets the CPU cores of a slot."""
            if cpu_cores <= 0:
                raise ProgramError(f"A slot needs more than 0 CPU cores, got {cpu_cores}.")
            self._cpu_cores = cpu_cores
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Sets the heap memory of a slot."""
            if task_heap_memory.bytes_size <= 0:
                raise ProgramError(f"A slot's task heap memory should be more than 0, got {task_heap_memory}.")
            self._memory["task_heap_memory"] = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Sets the heap memory of a slot in megabytes."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Sets the off-heap memory of a slot."""
            self._memory["task_off_heap_memory"] = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Sets the off-heap memory of a slot in megabytes."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Sets the managed memory of a slot."""
            self._memory["managed_memory"] = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Sets the managed memory of a slot in megabytes."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Sets another resource of a slot, such as GPUs."""
            self._external_resources[name] = value
            return self

        def build(self) -> SlotSharingGroup:
            """The finished group."""
            resources: dict[str, MemorySize | None] = dict(self._memory)
            required = self._cpu_cores is not None and "task_heap_memory" in self._memory
            anything = self._cpu_cores is not None or self._memory or self._external_resources
            if anything and not required:
                raise ProgramError(
                    f"Slot sharing group '{self._name}' names resources, so it needs both CPU cores and "
                    "task heap memory: call set_cpu_cores() and set_task_heap_memory_mb()."
                )
            if anything:  # as in Flink, what is left out of a specification is zero
                for kind in ("task_off_heap_memory", "managed_memory"):
                    resources.setdefault(kind, MemorySize(0))
            return SlotSharingGroup(
                self._name,
                self._cpu_cores,
                external_resources=dict(self._external_resources),
                **resources,
            )
