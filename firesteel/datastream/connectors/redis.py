"""Redis: streams as a source, commands as a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.secret import Secret
from firesteel.connectors.redis.connecting import Client, RedisAddress, load_client
from firesteel.connectors.redis.streams import RedisEntry, StreamEnumerator, StreamReader
from firesteel.connectors.redis.transactions import Marker, check_command, send_once
from firesteel.connectors.source import SourceReader, SplitEnumerator
from firesteel.datastream.connectors.base import DeliveryGuarantee, Source
from firesteel.datastream.connectors.batch_sink import BatchSink, SinkBatch
from firesteel.errors import ConnectorError, FailureKind, ProgramError, TypeMismatchError, short_repr

__all__ = ["RedisEntry", "RedisSink", "RedisSource"]

Text = str | Secret | Callable[[], str]
Command = Sequence[Any]


class RedisSource(Source[str, RedisEntry]):
    """Entries of streams, each exactly once: they are read by id, and a batch that is repeated reads the same ids.

    >>> RedisSource("redis://localhost:6379/0", ["clicks"]).create_enumerator().bounded
    False
    """

    def __init__(
        self,
        url: Text,
        streams: Sequence[str],
        *,
        user_name: str | None = None,
        password: Text | None = None,
        start: str = "0-0",
        bounded: bool = False,
        decode: bool = True,
        ignore_deleted: bool = False,
    ) -> None:
        """``start`` is the id behind which reading begins, ``"$"`` the newest one. ``bounded``: what there is when the
        job begins. ``decode``: fields are texts, not bytes. ``ignore_deleted``: entries that are gone before they were
        read are no error. A stream that does not exist yet is empty."""
        if isinstance(streams, str) or not streams:
            raise ProgramError(f"streams must be a list of names, got {short_repr(streams, 80)}.")
        if start != "$" and not start.replace("-", "", 1).isdigit():
            raise ProgramError(f"start must be an id such as '1700000000000-0', or '$', got {start!r}.")
        self._address = RedisAddress.of(url, user_name, password)
        self._streams, self._start, self._bounded = list(streams), start, bounded
        self._decode, self._ignore_deleted = decode, ignore_deleted

    def create_enumerator(self) -> SplitEnumerator[str]:
        return StreamEnumerator(self._address, self._streams, self._start, self._bounded, self._ignore_deleted)

    def create_reader(self) -> SourceReader[str, RedisEntry]:
        return StreamReader(self._address, self._decode, self._ignore_deleted)


class RedisSink(BatchSink):
    """Commands for records.

    ``commands`` makes of a record one command, a tuple that begins with its name, or a list of them.

    At least once the tasks send them: right for commands whose repetition changes nothing (``SET``, ``HSET``,
    ``ZADD``, ``SADD``). Exactly once the driver sends them when their checkpoint is complete, in transactions
    (``MULTI``) that also write the number of the batch, and which commands were refused, to a key of the sink's own:
    right for ``INCRBY``, ``XADD``, ``LPUSH``.

    >>> sink = RedisSink("redis://localhost:6379/0", lambda word: ("INCRBY", f"count:{word}", 1))
    >>> sink.convert("to")
    [('INCRBY', 'count:to', 1)]
    """

    max_records = 5000

    def __init__(
        self,
        url: Text,
        commands: Callable[[Any], Command | list[Command]],
        guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
        *,
        user_name: str | None = None,
        password: Text | None = None,
        marker_prefix: str = "firesteel:",
    ) -> None:
        """``marker_prefix``: how the key begins that has the number of the last batch, exactly once."""
        if not callable(commands):
            raise ProgramError(f"commands must be a function of a record, got {short_repr(commands, 80)}.")
        self.guarantee = guarantee
        self._commands, self._marker_prefix = commands, marker_prefix
        self._client = Client(RedisAddress.of(url, user_name, password))

    def __deepcopy__(self, memo: dict[int, Any]) -> RedisSink:
        made = RedisSink.__new__(type(self))
        made.__dict__.update(self.__dict__, _client=Client(self._client.address))
        return made

    def convert(self, value: Any) -> list[tuple[Any, ...]]:
        found = self._commands(value)
        commands = [tuple(one) for one in found] if isinstance(found, list) else [tuple(found)]
        for command in commands:
            if not command or not isinstance(command[0], str):
                raise TypeMismatchError(
                    f"A command is a tuple that begins with its name, such as ('SET', key, value); got {command!r}."
                )
            for part in command:
                if isinstance(part, bool) or not isinstance(part, str | bytes | int | float):
                    raise TypeMismatchError(
                        f"What a command is made of is a str, bytes, int or float; {command[0]} has "
                        f"{short_repr(part, 80)} of {type(part).__name__}."
                    )
            if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
                check_command(command)
        return commands

    def _marker(self, sink: str) -> str:
        return f"{self._marker_prefix}{sink}"

    def last_written(self, sink: str) -> int | None:
        found = self._client.run(lambda client: client.get(self._marker(sink)), "a look at the marker")
        return Marker.parse(found).last_complete if found is not None else None

    def write(self, batch: SinkBatch) -> None:
        commands = [command for group in batch.values for command in group]
        doing, number = f"{len(commands)} commands", batch.number
        if number is None:
            self._check(self._client.run(lambda client: _pipelined(client, commands), doing))
        else:
            key = self._marker(batch.sink)
            self._check(self._client.run(lambda client: send_once(client, key, number, commands), doing), key)

    def _check(self, replies: list[tuple[Command, Any]], marker: str = "") -> None:
        """Redis does not roll back: it does what it can, and says of the rest why not."""
        refused = [(command, reply) for command, reply in replies if _is_error(reply)]
        errors = [
            self._client.as_connector_error(reply, f"the command {command[0]}", command) for command, reply in refused
        ]
        permanent = [error for error in errors if error.kind is FailureKind.PERMANENT]
        if permanent and marker:
            raise ConnectorError(
                f"{permanent[0]} Refused were {len(refused)} of {len(replies)} commands of this batch, the others are "
                f"done. The refused ones are noted in the key {marker!r} and sent again when the job is started again, "
                "the others are not: remove the cause first.",
                kind=FailureKind.PERMANENT,
            )
        if errors:
            raise (permanent or errors)[0]

    def close(self) -> None:
        self._client.close()


def _pipelined(client: Any, commands: list[tuple[Any, ...]]) -> list[tuple[Any, Any]]:
    with client.pipeline(transaction=False) as pipeline:
        for command in commands:
            pipeline.execute_command(*command)
        return list(zip(commands, pipeline.execute(raise_on_error=False), strict=True))


def _is_error(reply: Any) -> bool:
    return isinstance(reply, load_client().RedisError)
