"""The process that Spark's Python workers are forked from, with everything they will need already imported.

Used through ``spark.python.daemon.module``. A fork of it starts in milliseconds; importing pandas, pyarrow and the
runtime would cost each worker most of a second.
"""

import contextlib
import importlib

import pyspark.worker
from pyspark.daemon import manager

from firesteel.engine.spark import affinity

PRELOADED = (
    "pandas",
    "pyarrow",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "firesteel.engine.spark.source",
    "firesteel.engine.spark.stage",
    "firesteel.engine.spark.worker",
    "firesteel.runtime.state.spark_store",
)

if __name__ == "__main__":
    for name in PRELOADED:
        # A worker that needs what cannot be imported here will say so in its own words.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    affinity.install(pyspark.worker)
    manager()
