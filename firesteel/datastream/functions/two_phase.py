"""Sinks that write in transactions, one per micro-batch and subtask."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.datastream.functions.base import Function
from firesteel.datastream.functions.sink import SinkFunction

__all__ = ["TwoPhaseCommitSinkFunction"]


class TwoPhaseCommitSinkFunction(Function):
    """Writes each record exactly once into a system that can prepare a transaction and commit it later.

    Two copies of the function are at work, and both are opened:

    * In each task: ``begin_transaction`` at the first record of a batch, ``invoke`` for each one, ``pre_commit`` when
      the batch ends. From then on the transaction must survive a crash of the task. One that is under way when the
      task ends is given to ``abort``.
    * In the driver: ``commit`` once the batch is logged. After a failure ``recover_and_commit`` for those that had to
      be committed, ``recover_and_abort`` for those whose records come again, ``abort_leftovers`` for what nobody knows
      of.

    So a transaction is a handle that can be pickled (an id, a file name), and what it stands for is found by it from
    another process.

    >>> import os, tempfile
    >>> class Files(TwoPhaseCommitSinkFunction):
    ...     def __init__(self, folder):
    ...         self.folder = folder
    ...     def begin_transaction(self):
    ...         return tempfile.mkstemp(dir=self.folder, suffix=".open")[1]
    ...     def invoke(self, transaction, value, context):
    ...         with open(transaction, "a") as file:
    ...             file.write(f"{value}\\n")
    ...     def commit(self, transaction):
    ...         if os.path.exists(transaction):
    ...             os.rename(transaction, transaction[:-5] + ".txt")
    ...     def abort(self, transaction):
    ...         os.remove(transaction)
    >>> from firesteel.testing import memory_environment
    >>> env = memory_environment()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = env.from_collection(["a", "b"]).add_sink(Files(folder))
    ...     _ = env.execute()
    ...     (name,) = os.listdir(folder)
    ...     name.endswith(".txt"), open(os.path.join(folder, name)).read()
    (True, 'a\\nb\\n')
    """

    @abstractmethod
    def begin_transaction(self) -> Any:
        """Begins a transaction and returns its handle."""

    @abstractmethod
    def invoke(self, transaction: Any, value: Any, context: SinkFunction.Context) -> None:
        """Writes a record into a transaction."""

    def pre_commit(self, transaction: Any) -> None:
        """The batch ends: nothing more is written into the transaction. After this call, committing it must be possible
        from another process, whatever happens to this one."""

    @abstractmethod
    def commit(self, transaction: Any) -> None:
        """Makes a transaction's records visible. If it fails, the job does, and ``recover_and_commit`` comes."""

    @abstractmethod
    def abort(self, transaction: Any) -> None:
        """Drops a transaction."""

    def recover_and_commit(self, transaction: Any) -> None:
        """Commits after a failure: the transaction may be committed already. Calls ``commit``."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: Any) -> None:
        """Drops a prepared transaction whose records come again. It may be gone already. Calls ``abort``."""
        self.abort(transaction)

    def abort_leftovers(self, prefix: str, pending: list[Any]) -> None:
        """Before each attempt and after the last: drops what this sink has prepared and is not ``pending``. A task that
        died may have prepared it; its records come again. ``prefix`` is the sink's own name (see ``use_prefix``)."""

    def use_prefix(self, prefix: str) -> None:
        """Called before ``open`` with a short name that this sink has over all restarts, and no other sink of any job:
        a function that names transactions with it finds its own ones again."""
