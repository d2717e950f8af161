"""What a job leaves behind in a session that goes on: nothing of ours, however many jobs there are."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession
from sparkkit import eventually, spark_env

JOBS = 4


def run_a_job() -> None:
    env = spark_env(2)
    keyed = env.from_collection([1, 2, 3]).key_by(lambda n: n).map(lambda n: n)
    with keyed.execute_and_collect() as records:
        assert sorted(records) == [1, 2, 3]


def threads_here() -> Counter[str]:
    return Counter(re.sub(r"\d+", "#", thread.name) for thread in threading.enumerate())


def descriptors_here() -> int:
    return len(os.listdir("/proc/self/fd"))


def callbacks_in_the_jvm(spark: SparkSession) -> int:
    """The JVM's ends of connections to the port on which this process is called."""
    port = spark.sparkContext._gateway._callback_server.port  # type: ignore[union-attr]
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    sockets = set()
    for link in Path(f"/proc/{jvm}/fd").iterdir():
        # The JVM goes on opening and closing files meanwhile.
        with contextlib.suppress(OSError):
            sockets.add(os.readlink(link))
    found = 0
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{jvm}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            found += int(fields[2].rpartition(":")[2], 16) == port and f"socket:[{fields[9]}]" in sockets
    return found


def test_jobs_leave_no_threads_and_no_descriptors_in_the_driver(spark: SparkSession) -> None:
    # What is made once for all jobs is there after the first one. Connections that Py4J keeps for another call are
    # closed within a minute, which is waited for.
    run_a_job()
    threads, descriptors, callbacks = threads_here(), descriptors_here(), callbacks_in_the_jvm(spark)
    for _ in range(JOBS):
        run_a_job()
    assert eventually(lambda: threads_here() <= threads), threads_here() - threads
    assert eventually(lambda: descriptors_here() <= descriptors), descriptors_here() - descriptors
    assert eventually(lambda: callbacks_in_the_jvm(spark) <= callbacks)
