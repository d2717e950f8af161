"""Streams of Redis, read by id.

The position of a stream is the id of the last entry that was read, and how many were; in a bounded source also the id
up to which it is read, so that a restart does not move the end. A batch that is repeated asks for the same ids. Entries
that were deleted or trimmed away before they were read are noticed: the server knows the last id that it has deleted,
and a range has to have as many entries as were counted when it was planned.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from firesteel.connectors.partitions import PartitionEnumerator
from firesteel.connectors.redis.connecting import Client, RedisAddress, load_client
from firesteel.connectors.retrying import retried
from firesteel.connectors.source import CHUNK_RECORDS, Position, Records, SourceReader
from firesteel.durable.names import stored_as
from firesteel.errors import InputError

__all__ = ["RedisEntry", "StreamEnumerator", "StreamReader"]

_LAST_OF = (
    "local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'COUNT', ARGV[3]) "
    "if #found == 0 then return {ARGV[2], 0} end "
    "return {found[#found][1], #found}"
)
"""The id of the last of some entries, and how many there are, without sending them."""

RETRY_SECONDS = 60.0


class RedisEntry(NamedTuple):
    """One entry of a stream.

    >>> RedisEntry("clicks", "1700000000000-0", {"page": "/"}).fields["page"]
    '/'
    """

    stream: str
    id: str
    fields: dict[Any, Any]

    @property
    def timestamp(self) -> int:
        """When the server took it, in milliseconds."""
        return int(self.id.partition("-")[0])


@stored_as("redis_entry")
def _redis_entry(stream: str, id: str, fields: dict[Any, Any]) -> RedisEntry:
    return RedisEntry(stream, id, fields)


copyreg.pickle(RedisEntry, lambda entry: (_redis_entry, tuple(entry)))


def _parts(entry_id: str) -> tuple[int, int]:
    milliseconds, _, number = entry_id.partition("-")
    return int(milliseconds), int(number or 0)


class StreamEnumerator(PartitionEnumerator[str]):
    """A stream is a split."""

    def __init__(
        self, address: RedisAddress, streams: list[str], start: str, bounded: bool, ignore_deleted: bool
    ) -> None:
        self._client, self._streams, self._start = Client(address), streams, start
        self.bounded, self._ignore_deleted = bounded, ignore_deleted
        self._stops: dict[str, str] = {}

    def stop(self) -> None:
        self._client.close()

    def _run(self, action: Any, doing: str) -> Any:
        return retried(lambda: self._client.run(action, doing), RETRY_SECONDS, doing)

    def _info(self, stream: str) -> dict[str, Any]:
        """What the server knows of a stream; nothing if there is none yet."""
        errors = load_client().exceptions

        def ask(client: Any) -> dict[str, Any]:
            try:
                found: dict[str, Any] = client.xinfo_stream(stream)
                return found
            except errors.ResponseError as error:
                if "no such key" in str(error):
                    return {}
                raise

        found: dict[str, Any] = self._run(ask, f"a look at stream {stream!r}")
        return found

    def _newest(self, stream: str) -> str:
        return _text(self._info(stream).get("last-generated-id", "0-0"))

    def discover(self) -> Mapping[str, str]:
        return {name: name for name in self._streams}

    def starts(self, splits: Mapping[str, str], initial: bool) -> Mapping[str, Position]:
        begins = {name: [self._newest(name) if self._start == "$" else self._start, 0] for name in splits}
        return {name: [*begin, self._stop_now(name)] if self.bounded else begin for name, begin in begins.items()}

    def _stop_now(self, name: str) -> str:
        if name not in self._stops:
            self._stops[name] = self._newest(name)
        return self._stops[name]

    def _stop(self, name: str, position: Position) -> str:
        """Where a bounded source ends. Positions of former versions do not say it."""
        return position[2] if len(position) > 2 else self._stop_now(name)

    def ends(self, splits: Mapping[str, str], positions: Mapping[str, Position]) -> Mapping[str, Position]:
        found: dict[str, Position] = {}
        for name in splits:
            at, read = positions[name][:2]
            info = self._info(name)
            newest = _text(info.get("last-generated-id", "0-0"))
            stop = [self._stop(name, positions[name])] if self.bounded else []
            newest = min([newest, *stop], key=_parts)
            if _parts(newest) <= _parts(at):
                continue
            deleted = _text(info.get("max-deleted-entry-id", "0-0"))
            if _parts(deleted) > _parts(at) and not self._ignore_deleted:
                raise InputError(
                    f"Stream {name!r} of {self._client.address}: entries behind {at} were deleted before they were "
                    f"read, up to {deleted} at the latest. Keep more of them (MAXLEN, MINID), or set ignore_deleted."
                )
            found[name] = [newest, read + max(1, int(info.get("length", 0))), *stop]
        return found

    def limit(self, split: str, start: Position, end: Position, records: int) -> Position:
        last, count = self._run(
            lambda client: client.eval(_LAST_OF, 1, split, start[0], end[0], records), f"a look at stream {split!r}"
        )
        # Nothing more up to there: what was the newest may have been deleted.
        return [_text(last) if int(count) == records else end[0], start[1] + int(count), *end[2:]]

    def record_count(self, start: Position, end: Position) -> int:
        return int(end[1]) - int(start[1])

    def finished(self, split: str, position: Position) -> bool:
        return self.bounded and _parts(position[0]) >= _parts(self._stop(split, position))


class StreamReader(SourceReader[str, RedisEntry]):
    """Entries between two ids, each with the time at which the server took it."""

    interleaves = True

    def __init__(self, address: RedisAddress, decode: bool, ignore_deleted: bool) -> None:
        self._client, self._decode, self._ignore_deleted = Client(address), decode, ignore_deleted

    def read(self, split: str, start: Position, end: Position) -> Iterator[Records[RedisEntry]]:
        at, left = start[0], int(end[1]) - int(start[1])
        while left > 0:
            found = self._fetch(split, at, end[0], min(left, CHUNK_RECORDS))
            if not found:
                break
            entries = [RedisEntry(split, _text(entry_id), self._fields(fields or {})) for entry_id, fields in found]
            at, left = entries[-1].id, left - len(entries)
            yield Records(entries, [int(entry.id.partition("-")[0]) for entry in entries])
        if left > 0 and not self._ignore_deleted:
            raise InputError(
                f"Stream {split!r} of {self._client.address}: {left} entries between {start[0]} and {end[0]} were "
                "deleted before they were read. Keep more of them (MAXLEN, MINID), or set ignore_deleted."
            )

    def _fetch(self, stream: str, at: str, end: str, count: int) -> list[Any]:
        doing = f"XRANGE of {stream!r}"

        def fetch() -> list[Any]:
            return self._client.run(lambda client: client.xrange(stream, f"({at}", end, count), doing)

        return retried(fetch, RETRY_SECONDS, doing)

    def _fields(self, fields: dict[bytes, bytes]) -> dict[Any, Any]:
        if not self._decode:
            return fields
        try:
            return {name.decode(): value.decode() for name, value in fields.items()}
        except UnicodeDecodeError as error:
            raise InputError(f"An entry has a field that is not UTF-8 ({error}). Set decode=False for bytes.") from None

    def close(self) -> None:
        self._client.close()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
