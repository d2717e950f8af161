"""The process that Spark's Python workers are forked from, with everything they will need already imported.

Used through ``spark.python.daemon.module``. A fork of it starts in milliseconds; importing pandas, pyarrow and the
runtime would cost each worker most of a second.
"""

import contextlib
import gc
import importlib
import logging

import pyspark.worker
from pyspark.daemon import manager

from firesteel.common.process_environment import JVM_FLAGS, LOG_LEVEL, take
from firesteel.engine.spark import affinity, arrow_tasks

PRELOADED = (
    "pandas",
    "pyarrow",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "firesteel.engine.spark.data_source",
    "firesteel.engine.spark.stage",
    "firesteel.engine.spark.worker",
    "firesteel.runtime.state.spark_store",
)


def show_log() -> None:
    """What functions log reaches the driver's stderr with its level and its logger's name, from the level on that the
    driver's own log has. Only where a program sets up nothing itself: its ``basicConfig`` in a worker still counts."""
    level = take(LOG_LEVEL)
    fallback = logging.lastResort
    if fallback is not None:
        fallback.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        if level.isdigit():
            fallback.setLevel(int(level))
            logging.getLogger().setLevel(int(level))


def preload() -> None:
    """Imports what workers need, and hides it from their garbage collector: PySpark's workers collect garbage after
    every task, and would look at a hundred thousand objects of modules each time, which takes 50 ms."""
    for name in PRELOADED:
        # A worker that needs what cannot be imported here will say so in its own words.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    preload()
    arrow_tasks.install(pyspark.worker)
    affinity.install(pyspark.worker)
    show_log()
    take(JVM_FLAGS)
    manager()
