"""How asynchronous functions are awaited: how many calls at once, how long, and what happens when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.errors import ConfigurationError

__all__ = ["AsyncOptions"]

PREFIX = "table.exec.async-scalar."
FIXED_DELAY, NO_RETRY = "FIXED_DELAY", "NO_RETRY"


@dataclass(frozen=True)
class AsyncOptions:
    """Flink's options, with its defaults.

    >>> AsyncOptions.of(Configuration.from_dict({"table.exec.async-scalar.retry-strategy": "NO_RETRY"})).retries
    0
    """

    at_once: int = 10
    """How many calls are under way at once."""
    timeout: float = 180.0
    """Seconds that a call may take, together with its retries."""
    retries: int = 3
    delay: float = 0.1
    """Seconds before a retry."""

    @staticmethod
    def of(configuration: Configuration) -> AsyncOptions:
        """As the settings say."""
        strategy = configuration.get_string(f"{PREFIX}retry-strategy", FIXED_DELAY)
        if strategy not in (FIXED_DELAY, NO_RETRY):
            raise ConfigurationError(f"{PREFIX}retry-strategy should be {FIXED_DELAY} or {NO_RETRY}, got {strategy!r}.")
        at_once = configuration.get_integer(f"{PREFIX}max-concurrent-operations", 10)
        if at_once < 1:
            raise ConfigurationError(f"{PREFIX}max-concurrent-operations should be at least 1, got {at_once}.")
        return AsyncOptions(
            at_once,
            configuration.get_duration_ms(f"{PREFIX}timeout", 180_000) / 1000,
            configuration.get_integer(f"{PREFIX}max-attempts", 3) if strategy == FIXED_DELAY else 0,
            configuration.get_duration_ms(f"{PREFIX}retry-delay", 100) / 1000,
        )

    def awaited(
        self, function: Callable[..., Any], rows: Iterable[tuple[Any, ...]], note: Callable[[int], str]
    ) -> list[Any]:
        """The results for all rows. ``note`` says which row it was that failed."""

        async def everything() -> list[Any]:
            turns = asyncio.Semaphore(self.at_once)

            async def one(index: int, row: tuple[Any, ...]) -> Any:
                async with turns:
                    try:
                        return await self._in_time(function, row)
                    except Exception as error:
                        error.add_note(note(index))
                        raise

            return list(await asyncio.gather(*(one(index, row) for index, row in enumerate(rows))))

        return asyncio.run(everything())

    async def _in_time(self, function: Callable[..., Any], row: tuple[Any, ...]) -> Any:
        try:
            async with asyncio.timeout(self.timeout) as limit:
                return await self._retried(function, row)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimeoutError(
                f"An asynchronous function took longer than {self.timeout:g} s, with its retries. Raise "
                f"{PREFIX}timeout if it may."
            ) from None

    async def _retried(self, function: Callable[..., Any], row: tuple[Any, ...]) -> Any:
        for _ in range(self.retries):
            try:
                return await function(*row)
            except Exception:
                await asyncio.sleep(self.delay)
        return await function(*row)
