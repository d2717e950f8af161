"""The process that Spark's Python workers are forked from, with everything they will need already imported.

Used through ``spark.python.daemon.module``. A fork of it starts in milliseconds; importing pandas, pyarrow and the
runtime would cost each worker most of a second.
"""

import contextlib

with contextlib.suppress(ImportError):
    import firesteel.engine.spark.stage
    import firesteel.engine.spark.worker
    import firesteel.runtime.state.spark_store  # noqa: F401

from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
