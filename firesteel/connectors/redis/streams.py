"""Streams of Redis, read by id.

The position of a stream is the id of the last entry that was read, and how many were; in a bounded source also the id
up to which it is read, so that a restart does not move the end. A batch that is repeated asks for the same ids.

Entries that were deleted or trimmed away before they were read are noticed, by numbers: the server counts all entries
that were ever added to a stream, and the position has how many had been when its entry was the last one. As many as
were added since must be there. What was gone before the job began is in neither number. Beside that the server knows
the greatest id that was deleted (XDEL), and a range has to have as many entries as were counted when it was planned.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
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
COUNTED_AT_ONCE = 10_000


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


@dataclass(frozen=True)
class _Place:
    """A position in a stream."""

    id: str
    read: int
    stop: str | None = None
    """The last id of a bounded source. Positions of former versions may lack it, and what comes after it."""
    added: int | None = None
    """How many entries had been added to the stream up to the id, those among them that are gone."""
    stop_added: int | None = None
    """The same up to ``stop``."""
    deleted: str = "0-0"
    """The greatest id that had been deleted when the job began."""
    before: int | None = None
    """Only of how far a stream could be read, which is not kept: ``added`` of where that begins."""

    @staticmethod
    def of(position: Position) -> _Place:
        return _Place(**position) if isinstance(position, dict) else _Place(*position)

    def position(self) -> Position:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class _Stream:
    """What the server knows of a stream."""

    length: int = 0
    newest: str = "0-0"
    first: str | None = None
    added: int | None = 0
    """None of a server before Redis 7, which does not count it."""
    deleted: str = "0-0"

    @staticmethod
    def of(info: Mapping[str, Any]) -> _Stream:
        first, added = info.get("first-entry"), info.get("entries-added")
        return _Stream(
            int(info["length"]),
            _text(info["last-generated-id"]),
            _text(first[0]) if first else None,
            None if added is None else int(added),
            _text(info.get("max-deleted-entry-id", "0-0")),
        )

    def begins_behind(self, entry_id: str) -> bool:
        """Whether all that it has comes after an id, so that it is known how many entries these are."""
        return self.first is None or _parts(self.first) > _parts(entry_id)


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

    def _look(self, stream: str) -> _Stream:
        """A stream that is not there yet is an empty one."""
        errors = load_client().exceptions

        def ask(client: Any) -> _Stream:
            try:
                return _Stream.of(client.xinfo_stream(stream))
            except errors.ResponseError as error:
                if "no such key" in str(error):
                    return _Stream()
                raise

        found: _Stream = self._run(ask, f"a look at stream {stream!r}")
        return found

    def _last_of(self, stream: str, start: str, end: str, records: int) -> tuple[str, int]:
        last, count = self._run(
            lambda client: client.eval(_LAST_OF, 1, stream, start, end, records), f"a look at stream {stream!r}"
        )
        return _text(last), int(count)

    def discover(self) -> Mapping[str, str]:
        return {name: name for name in self._streams}

    def starts(self, splits: Mapping[str, str], initial: bool) -> Mapping[str, Position]:
        return {name: self._begin(name, self._look(name)).position() for name in splits}

    def _begin(self, name: str, stream: _Stream) -> _Place:
        at = stream.newest if self._start == "$" else self._start
        place = _Place(at, 0, added=self._added(name, at, stream), deleted=stream.deleted)
        return replace(place, stop=stream.newest, stop_added=stream.added) if self.bounded else place

    def _added(self, name: str, at: str, stream: _Stream) -> int | None:
        """How many entries of a stream had been added up to an id; None where the server does not know, or where
        nothing has been added behind it yet: it may be an id of the future."""
        if stream.added is None or _parts(at) > _parts(stream.newest):
            return None
        if stream.begins_behind(at):
            return stream.added - stream.length
        # In pieces: a server does nothing else while it counts.
        found, count = 0, COUNTED_AT_ONCE
        while count == COUNTED_AT_ONCE:
            at, count = self._last_of(name, at, stream.newest, COUNTED_AT_ONCE)
            found += count
        return stream.added - found

    def _stop(self, name: str, place: _Place) -> str:
        """Where a bounded source ends. Positions of former versions do not say it."""
        if place.stop is not None:
            return place.stop
        if name not in self._stops:
            self._stops[name] = self._look(name).newest
        return self._stops[name]

    def ends(self, splits: Mapping[str, str], positions: Mapping[str, Position]) -> Mapping[str, Position]:
        found: dict[str, Position] = {}
        for name in splits:
            place, stream = _Place.of(positions[name]), self._look(name)
            end = replace(place, id=stream.newest, added=stream.added)
            if self.bounded:
                stop = self._stop(name, place)
                end = replace(end, stop=stop)
                if _parts(stop) <= _parts(stream.newest):
                    end = replace(end, id=stop, added=place.stop_added)
            if _parts(end.id) <= _parts(place.id):
                continue
            before = place.added
            if before is None or (self._ignore_deleted and stream.begins_behind(place.id)):
                before = self._added(name, place.id, stream)
            if not self._ignore_deleted:
                self._check(name, replace(place, added=before), end.id, stream)
            waiting = stream.length
            if before is not None and end.added is not None:
                waiting = min(waiting, end.added - before)
            found[name] = replace(end, read=place.read + max(1, waiting), before=before).position()
        return found

    def _check(self, name: str, at: _Place, end: str, stream: _Stream) -> None:
        """Whether all entries between two ids are there, as far as that is known before they are counted."""
        if _parts(stream.deleted) > max(_parts(at.id), _parts(at.deleted)) and _parts(stream.deleted) <= _parts(end):
            raise self._lost(
                name, f"entries behind {at.id} were deleted before they were read, up to {stream.deleted} at the latest"
            )
        if not stream.begins_behind(at.id) or _parts(stream.deleted) > _parts(end):
            return
        if at.added is None or stream.added is None:
            return
        missing = stream.added - at.added - stream.length
        if missing > 0:
            raise self._lost(name, f"{missing} entries behind {at.id} were trimmed away before they were read")
        if missing < 0:
            raise self._lost(
                name,
                f"it was deleted and made anew after {at.id} was read, or the server has lost its end: it counts fewer "
                "entries than were read and are there. Whether some of the former ones were never read is not known",
            )

    def _lost(self, name: str, what: str) -> InputError:
        return InputError(
            f"Stream {name!r} of {self._client.address}: {what}. Keep more of them (MAXLEN, MINID), or set "
            "ignore_deleted."
        )

    def limit(self, split: str, start: Position, end: Position, records: int) -> Position:
        place, until = _Place.of(start), _Place.of(end)
        last, count = self._last_of(split, place.id, until.id, records)
        if count < records:
            # Nothing more up to there: what was the newest may have been deleted.
            last = until.id
        before, added = until.before, until.added
        if last != until.id:
            added = None if before is None else before + count
        elif before is not None and added is not None and added - before > count and not self._ignore_deleted:
            raise self._lost(
                split,
                f"{added - before - count} entries between {place.id} and {last} were deleted before they were read",
            )
        return replace(until, id=last, read=place.read + count, added=added, before=None).position()

    def record_count(self, start: Position, end: Position) -> int:
        return _Place.of(end).read - _Place.of(start).read

    def finished(self, split: str, position: Position) -> bool:
        if not self.bounded:
            return False
        place = _Place.of(position)
        return _parts(place.id) >= _parts(self._stop(split, place))


class StreamReader(SourceReader[str, RedisEntry]):
    """Entries between two ids, each with the time at which the server took it."""

    interleaves = True

    def __init__(self, address: RedisAddress, decode: bool, ignore_deleted: bool) -> None:
        self._client, self._decode, self._ignore_deleted = Client(address), decode, ignore_deleted

    def read(self, split: str, start: Position, end: Position) -> Iterator[Records[RedisEntry]]:
        first, last = _Place.of(start), _Place.of(end)
        at, left = first.id, last.read - first.read
        while left > 0:
            found = self._fetch(split, at, last.id, min(left, CHUNK_RECORDS))
            if not found:
                break
            entries = [RedisEntry(split, _text(entry_id), self._fields(fields or {})) for entry_id, fields in found]
            at, left = entries[-1].id, left - len(entries)
            yield Records(entries, [int(entry.id.partition("-")[0]) for entry in entries])
        if left > 0 and not self._ignore_deleted:
            raise InputError(
                f"Stream {split!r} of {self._client.address}: {left} entries between {first.id} and {last.id} were "
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
