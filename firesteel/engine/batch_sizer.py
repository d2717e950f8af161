"""How many records the next batch may have."""

from __future__ import annotations

__all__ = ["BatchSizer"]

FIRST_BATCH, FIRST_BATCH_FOR_LATENCY = 4096, 512
LARGEST_BATCH = 4_000_000
BACKLOG_FROM = 4
"""So many full batches in a row are a backlog."""
OVERHEADS = 5
"""A batch of a backlog is so many times as long as one that has hardly any records."""


class BatchSizer:
    """Admission control: sizes batches so that one takes about the target duration.

    >>> sizer = BatchSizer(target_ms=1000)
    >>> first = sizer.limit
    >>> sizer.observe(first, 500)
    >>> sizer.limit > first
    True

    Another target may hold for a backlog, which is there when several batches in a row were full. Every record waits
    then anyway, and longer batches get through it sooner: what a batch costs beyond its records is paid less often.
    Where that alone takes a good part of the target, batches of a backlog are longer still, up to ``longest_ms``.

    With ``latency_ms`` the target is how much longer a batch takes than one that has hardly any records: so long does a
    record wait for those beside it. There may be few records then.

    >>> sizer = BatchSizer(target_ms=1000, latency_ms=50)
    >>> sizer.observe(1, 150)
    >>> sizer.observe(sizer.limit, 150 + 4 * 50)
    >>> sizer.limit == FIRST_BATCH_FOR_LATENCY // 4
    True
    """

    def __init__(
        self,
        target_ms: int,
        fixed: int = 0,
        backlog_ms: int | None = None,
        max_bytes: int = 0,
        longest_ms: int = 0,
        latency_ms: int | None = None,
    ) -> None:
        self._target = target_ms
        self._max_bytes = max_bytes
        self._record_bytes = 0.0
        """What a record has led to in the batches so far: bytes of the stage that sent most."""
        self._fixed = fixed
        self._backlog = target_ms if backlog_ms is None else backlog_ms
        self._longest = longest_ms
        self._least = float("inf")
        """How long the shortest batch took: what one costs beyond its records is no more than that."""
        self._full = 0
        """How many batches in a row were full."""
        self._latency = None if latency_ms is None else max(latency_ms, 1)
        self._smallest = FIRST_BATCH if latency_ms is None else 1
        self.limit = fixed or (FIRST_BATCH if latency_ms is None else FIRST_BATCH_FOR_LATENCY)
        self._before_backlog = self.limit

    def observe(self, records: int, duration_ms: float) -> None:
        if self._fixed:
            return
        self._least = min(self._least, duration_ms)
        if records < self.limit // 2:
            # A batch that was not full says nothing about what a full one would take.
            if self._full >= BACKLOG_FROM:
                shorter = int(self.limit * self._target / self._backlog_target())
                self.limit = self._before_backlog if self._latency is not None else max(shorter, FIRST_BATCH)
            self._full = 0
            return
        self._full += 1
        if self._full < BACKLOG_FROM and self._latency is not None:
            wanted = records * self._latency / max(duration_ms - self._least, 1)
        else:
            target = self._target if self._full < BACKLOG_FROM else self._backlog_target()
            wanted = records * target / max(duration_ms, 1)
        # One slow batch must not make the next one tiny, and the first ones carry start-up costs.
        self.limit = int(min(max(wanted, self.limit / 4, self._smallest), self.limit * 16, LARGEST_BATCH))
        if self._full < BACKLOG_FROM:
            self._before_backlog = self.limit

    def _backlog_target(self) -> float:
        return max(self._backlog, min(OVERHEADS * self._least, self._longest))

    def weigh(self, records: int, size: int) -> None:
        """A batch of so many records was of so many bytes."""
        if records:
            mean = size / records
            # Large records count at once, small ones by and by: the large ones may come back.
            self._record_bytes = max(mean, self._record_bytes * 0.75 + mean * 0.25)

    @property
    def records(self) -> int:
        """How many records the next batch may have: as many as fit into its time and into its bytes."""
        if not self._max_bytes or not self._record_bytes:
            return self.limit
        return max(1, min(self.limit, int(self._max_bytes / self._record_bytes)))
