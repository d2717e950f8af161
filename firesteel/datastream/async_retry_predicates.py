"""Ready-made tests for retry strategies.

>>> from functools import partial
>>> from firesteel.datastream.functions import AsyncRetryStrategy
>>> unreachable = partial(exception_type_predicate, expected_error_type=ConnectionError)
>>> strategy = AsyncRetryStrategy.fixed_delay(3, 100, empty_result_predicate, unreachable)
>>> strategy.get_retry_predicate().exception_predicate()(ConnectionResetError())
True
"""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any]) -> bool:
    """Retries where the answer holds nothing."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Retries after every exception."""
    return error is not None


def exception_type_predicate(error: BaseException, expected_error_type: type[BaseException]) -> bool:
    """Retries after exceptions of one type."""
    return isinstance(error, expected_error_type)
