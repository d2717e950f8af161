"""When a task may start, as older programs set it."""

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """Kept for older programs: whether a task waits for any or for all of its inputs.

    >>> InputDependencyConstraint.ALL.value
    1
    """

    ANY = 0
    ALL = 1
