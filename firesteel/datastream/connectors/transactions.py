"""A TwoPhaseCommitSinkFunction as a sink: a transaction is a committable."""

from __future__ import annotations

import copy
from typing import Any

from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from firesteel.datastream.functions import CheckpointedFunction, SinkFunction, TwoPhaseCommitSinkFunction
from firesteel.errors import ProgramError

__all__ = ["TransactionSink"]


class TransactionSink(Sink):
    """What ``add_sink`` makes of a :class:`TwoPhaseCommitSinkFunction`."""

    def __init__(self, function: TwoPhaseCommitSinkFunction) -> None:
        if isinstance(function, CheckpointedFunction):
            raise ProgramError(
                f"{type(function).__name__} is a TwoPhaseCommitSinkFunction and a CheckpointedFunction. A sink with "
                "transactions keeps nothing from batch to batch but its transactions: drop the latter."
            )
        self._function = function

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(self._function, context)

    def create_committer(self, context: CommitterContext) -> Committer:
        # A copy: what it opens must not travel to the tasks.
        return _Committer(copy.deepcopy(self._function), context)


class _Writer(SinkWriter):
    def __init__(self, function: TwoPhaseCommitSinkFunction, context: WriterContext) -> None:
        self._function = function
        self._transaction: Any = None
        self._begun = False
        function.use_prefix(context.name_prefix())
        function.open(context.runtime_context())

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        if not self._begun:
            self._transaction, self._begun = self._function.begin_transaction(), True
        self._function.invoke(self._transaction, value, context)

    def prepare_commit(self) -> list[Any]:
        if not self._begun:
            return []
        # Not before it is prepared: if that fails, closing drops it.
        self._function.pre_commit(self._transaction)
        self._begun = False
        return [self._transaction]

    def close(self) -> None:
        try:
            if self._begun:
                self._begun = False
                self._function.abort(self._transaction)
        finally:
            self._function.close()


class _Committer(Committer):
    def __init__(self, function: TwoPhaseCommitSinkFunction, context: CommitterContext) -> None:
        self._function, self._prefix = function, context.name_prefix()
        function.use_prefix(self._prefix)
        function.open(context.runtime_context())

    def commit(self, committables: list[Any]) -> None:
        for transaction in committables:
            self._function.commit(transaction)

    def recover_and_commit(self, committables: list[Any]) -> None:
        for transaction in committables:
            self._function.recover_and_commit(transaction)

    def abort(self, committables: list[Any]) -> None:
        for transaction in committables:
            self._function.recover_and_abort(transaction)

    def recover(self, pending: list[Any]) -> None:
        self._function.abort_leftovers(self._prefix, pending)

    def close(self) -> None:
        self._function.close()
