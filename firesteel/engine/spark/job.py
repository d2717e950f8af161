"""A job on Spark: one streaming query (or, in BATCH mode, one batch job) and the driver's part of each batch."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import time
from dataclasses import asdict, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from firesteel.engine.job import EngineJob
from firesteel.engine.spark import affinity
from firesteel.engine.spark.errors import translate
from firesteel.engine.spark.files import pack_job, write_job
from firesteel.engine.spark.lifeline import Lifeline
from firesteel.engine.spark.session import get_session, import_paths, ship_files
from firesteel.engine.spark.source import CONTROL, FiresteelDataSource
from firesteel.engine.spark.stage import batch_stage, streaming_stage
from firesteel.engine.submission import Submission
from firesteel.errors import JobExecutionError

__all__ = ["SparkJob"]

logger = logging.getLogger("firesteel")


class SparkJob(EngineJob):
    """A job whose stages are Spark's, whose state is in Spark's state store, whose log is Spark's checkpoint."""

    def __init__(self, submission: Submission) -> None:
        super().__init__(submission)
        self._directory: str | None = None
        self._query: Any = None
        self._failure: BaseException | None = None
        self._session: SparkSession | None = None
        self._lifeline: Lifeline | None = None

    @property
    def processes_stay(self) -> bool:
        return affinity.available()

    def prepare(self) -> str:
        # 1. The job's local folder: what the source's processes read. It goes with the job.
        self._directory = tempfile.mkdtemp(prefix="firesteel-")
        # 2. What cannot be pickled is found before Spark is started.
        durable = self.settings.checkpoint_dir or os.path.join(self._directory, "checkpoint")
        sources = os.path.join(durable, "firesteel-sources")
        payload, whole = pack_job(self.spec, import_paths(self.settings))
        # 3. Spark, and the line by which its workers will learn that the job is over.
        session = self._session = get_session(self.settings, self.spec.name)
        self._lifeline = _lifeline(session)
        if self._lifeline is not None:
            payload = replace(payload, lifeline=self._lifeline.address)
        write_job(self._directory, payload, whole, self.settings, sources)
        # 4. The query's plan.
        ship_files(session, self.submission)
        session.dataSource.register(FiresteelDataSource)
        width = self.spec.graph.parallelism
        try:
            if self.spec.batch_mode:
                frame = session.read.format("firesteel").option("directory", self._directory).load()
                for stage in self.spec.graph.stages[1:]:
                    frame = batch_stage(frame, payload, stage.index, width)
                self._batch = frame
            else:
                session.conf.set("spark.sql.shuffle.partitions", str(width))
                frame = session.readStream.format("firesteel").option("directory", self._directory).load()
                for stage in self.spec.graph.stages[1:]:
                    frame = streaming_stage(frame, payload, stage.index, width)
                self._query = (
                    frame.writeStream.foreachBatch(self._take_for_query)
                    .option("checkpointLocation", os.path.join(durable, "query"))
                    .outputMode("update")
                    .queryName(f"{self.spec.name}-{self.job_id[:8]}")
                    .start()
                )
        except Exception as error:
            raise translate(error) from error
        address = session.sparkContext.uiWebUrl
        return f"{session.sparkContext.master}" + (f", Spark's page at {address}" if address else "")

    def _take(self, frame: DataFrame, batch: int) -> None:
        """The end of a micro-batch. A single action: touching the frame twice would compute the batch twice."""
        cells = frame.select("f").toArrow().column("f").to_pylist()
        self.inbox.take(batch, cells)
        self._tell_coordinator()

    def _take_for_query(self, frame: DataFrame, batch: int) -> None:
        """``_take`` as Spark calls it. What goes wrong is kept here, and Spark gets a short word only: it searches an
        exception's text for interruptions by a pattern that overflows the stack on a text as long as a JVM trace,
        and then the query would end without saying anything."""
        try:
            self._take(frame, batch)
        except BaseException as error:
            self._failure = error
            raise RuntimeError("the batch failed, and the driver knows why") from None

    def _tell_coordinator(self) -> None:
        assert self._directory is not None
        path = os.path.join(self._directory, CONTROL)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(asdict(self.inbox.word()), file)
        os.replace(path + ".new", path)

    def run(self) -> None:
        try:
            if self.spec.batch_mode:
                assert self._session is not None
                # A group of its own, so that cancelling this job cancels no other.
                self._session.sparkContext.setJobGroup(self.job_id, self.spec.name, interruptOnCancel=True)
                self._take(self._batch, 0)
                return
            while not self.inbox.finished.wait(0.05):
                if self.cancelled or not self._query.isActive:
                    break
            self._wait_until_logged()
            failure = self._failure or self._query.exception()
            if failure is not None:
                raise failure
            if not self.inbox.finished.is_set() and not self.cancelled:
                raise JobExecutionError("Spark's query ended before the job's input did, and did not say why.")
        except Exception as error:
            raise translate(error) from error
        finally:
            if self._query is not None:
                self._query.stop()

    def _wait_until_logged(self) -> None:
        """The last batch is taken, but the query still has to write it into its commit log."""
        deadline = time.monotonic() + 30
        while self._query.isActive and not self.cancelled and time.monotonic() < deadline:
            if not self._query.status["isTriggerActive"]:
                return
            time.sleep(0.01)

    def interrupt(self) -> None:
        if self._query is not None:
            self._query.stop()
        elif self._session is not None:
            self._session.sparkContext.cancelJobGroup(self.job_id)

    def clean_up(self) -> None:
        if self._lifeline is not None:
            # After the last batch there is nothing left to close; after a failure or a cancellation there is.
            for failed in self._lifeline.end():
                logger.warning("closing the functions of job %r: %s", self.spec.name, failed)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def _lifeline(session: SparkSession) -> Lifeline | None:
    """On the address by which Spark's executors reach the driver. Jobs run without it, too."""
    conf = session.sparkContext.getConf()
    host = str(conf.get("spark.driver.host", "127.0.0.1"))
    try:
        return Lifeline(host, str(conf.get("spark.driver.bindAddress", host)))
    except OSError as error:
        logger.warning("cannot listen on %s (%s): close() will not be called if the job is cancelled", host, error)
        return None
