"""What Firesteel sets in Spark, where it sets it, and what it leaves to the user.

Settings of the *context* hold for all that runs in it, and only who starts it can make them. Those of the *session* are
set in sessions of our own (see :mod:`.session`). A user's settings win over both, apart from the few without which a
job would be wrong: these hold in our own sessions, and so concern nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "CONTEXT",
    "ELSEWHERE",
    "FEW_ARENAS",
    "FILE_MANAGER",
    "FOR_NO_PAGE",
    "LOCAL_CONTEXT",
    "REQUIRED",
    "SESSION",
    "WORKER_MODULE",
    "overruled",
    "session_settings",
]

_STREAMING = "spark.sql.streaming"
_STATE_STORE = f"{_STREAMING}.stateStore"

WORKER_MODULE = ("spark.python.daemon.module", "firesteel.engine.spark.daemon")
"""The process that Python workers are forked from."""

CONTEXT = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    # Every function on columns would first look for the line that calls it, which takes a millisecond and finds ours.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    WORKER_MODULE[0]: WORKER_MODULE[1],
}

FOR_NO_PAGE = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
}
"""How much Spark remembers of what is done. Its defaults are for its page: a thousand jobs, stages and queries, that is
a minute and a half of small batches, and thirty megabytes that every full collection goes through."""

FEW_ARENAS = ("MALLOC_ARENA_MAX", "2")
"""The C library gives threads heaps of their own, and Spark's state server is a new thread in every batch: what RocksDB
frees in one is not found by the next, and the JVM takes several times the memory that RocksDB is allowed."""

LOCAL_CONTEXT = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.bindAddress": "127.0.0.1",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
}

ELSEWHERE = {f"spark.executorEnv.{FEW_ARENAS[0]}": FEW_ARENAS[1]}

REQUIRED = {
    # Spark's other provider has no transformWithState.
    f"{_STATE_STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    # A subtask is a partition: nothing may merge or split partitions.
    "spark.sql.adaptive.enabled": "false",
    # The coordinator says which batches there are.
    f"{_STREAMING}.noDataMicroBatches.enabled": "false",
}
"""Without these a job would be wrong: they win over what the context was started with and what the job asks for."""

SESSION = {
    # Per batch only what changed of the state is uploaded.
    f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    # RocksDB's memory is outside the JVM's heap: without a limit it would grow with the state.
    f"{_STATE_STORE}.rocksdb.boundedMemoryUsage": "true",
    f"{_STATE_STORE}.rocksdb.maxMemoryUsageMB": "512",
    # With a limit, indexes of blocks have to share it, too. With the small blocks that are Spark's default they do not
    # fit when the state is some hundred MB large; then every read loads and unpacks one again, which takes 1.7 ms
    # instead of 0.05.
    f"{_STATE_STORE}.rocksdb.blockSizeKB": "32",
    # Counting rows would cost every write a read.
    f"{_STATE_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    # Plans are tiny and run for a few rows a task: generating and compiling Java for them costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    f"{_STREAMING}.numRecentProgressUpdates": "20",
    # Where there is nothing to read, the coordinator waits. Between two questions nobody looks at the sources.
    f"{_STREAMING}.pollingDelay": "1",
    # Spark has separate workers for each set of environment variables, and this sets one for tasks of the source, not
    # for those of later stages: their parent process would start with the first batch, and a subtask had two processes.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # Frames are large rows: few of them make a batch on the way to Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    # And few bytes: each running task has such a batch in memory.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}

_LOCAL_SESSION = {f"{_STREAMING}.checkpoint.fileChecksum.enabled": "false"}

FILE_MANAGER = (
    f"{_STREAMING}.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)
"""How files of a checkpoint in a local folder are written. Spark's default asks a process (readlink) for every look at
a file, seven times in a batch of one keyed stage. Both write a file beside its place and rename it."""


def session_settings(
    context: Mapping[str, str], asked: Mapping[str, str], local: bool, local_files: bool, of_job: bool = True
) -> dict[str, str]:
    """The settings of a session of our own: what the job asks for, then what the context was started with, then ours.
    Those without which a streaming job would be wrong come before all; in a session for other work (``of_job`` is
    False), such as queries of batch mode, what it asks for counts.

    ``local`` says whether tasks run on this machine, ``local_files`` whether the checkpoint is in a folder of it.

    >>> made = session_settings({"spark.sql.codegen.wholeStage": "true", "spark.sql.adaptive.enabled": "true"},
    ...     {"spark.sql.streaming.minBatchesToRetain": "2", "spark.app.name": "x"}, local=True, local_files=True)
    >>> made["spark.sql.adaptive.enabled"], made["spark.sql.streaming.minBatchesToRetain"]
    ('false', '2')
    >>> "spark.sql.codegen.wholeStage" in made, "spark.app.name" in made
    (False, False)
    """
    ours = {**SESSION, **(_LOCAL_SESSION if local else {}), **(dict([FILE_MANAGER]) if local_files else {})}
    return {
        **{key: value for key, value in ours.items() if key not in context},
        **REQUIRED,
        **{key: value for key, value in asked.items() if key.startswith("spark.sql.")},
        **(REQUIRED if of_job else {}),
    }


def overruled(asked: Mapping[str, str]) -> list[str]:
    """What a job asks for and cannot have, because it would be wrong with it.

    >>> overruled({"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "8"})
    ['spark.sql.adaptive.enabled']
    """
    return sorted(key for key, value in REQUIRED.items() if asked.get(key, value).lower() != value.lower())
