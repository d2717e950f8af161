"""Jobs on Spark: what is made ready before the first attempt begins."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from dataclasses import replace

from pyspark.sql import SparkSession

from firesteel.engine.backends import backend_name
from firesteel.engine.commit_log import job_id_of
from firesteel.engine.driver_sources import DriverSources
from firesteel.engine.folder_lock import Holder
from firesteel.engine.imports import IMPORTS
from firesteel.engine.job_context import JobContext
from firesteel.engine.job_run import Engine
from firesteel.engine.manifest import CheckpointFolder, Manifest, is_checkpoint
from firesteel.engine.processes import jvm_process
from firesteel.engine.savepoints.beginning import find_restore, restore_path
from firesteel.engine.savepoints.places import Place
from firesteel.engine.scratch import scratch_folder
from firesteel.engine.settings import Settings
from firesteel.engine.shipping import gather
from firesteel.engine.spark import affinity
from firesteel.engine.spark.attempt import SharedByAttempts
from firesteel.engine.spark.context import has_worker_module, with_master
from firesteel.engine.spark.coordinator_link import CoordinatorLink
from firesteel.engine.spark.data_source import FiresteelDataSource
from firesteel.engine.spark.hadoop import HadoopStorage, hadoop_options
from firesteel.engine.spark.job import SparkJob
from firesteel.engine.spark.packing import pack_job
from firesteel.engine.spark.session import import_paths, job_session, release_session, ship_files
from firesteel.errors import CheckpointError, ConfigurationError
from firesteel.filesystems import LOCAL, Storage, is_remote

__all__ = ["SparkEngine"]

logger = logging.getLogger("firesteel")

FEW_RECORDS = 100_000
"""With no more than so many records of each source, a job is over before it would gain from a slower start."""


class SparkEngine(Engine):
    """Stages are Spark's, state is in Spark's state store, the log is Spark's checkpoint."""

    name = "spark"
    starting = "starting Spark"

    def __init__(self, settings: Settings) -> None:
        self.processes_stay = affinity.available() and has_worker_module(settings)

    def prepare(self, context: JobContext) -> SparkJob:
        context.settings = with_master(context.settings)
        # 1. The job's local folder: what the source's processes read. It goes with the job.
        directory = tempfile.mkdtemp(prefix="job-", dir=scratch_folder())
        context.at_end.add(lambda: shutil.rmtree(directory, ignore_errors=True))
        # 2. What cannot be pickled, and a checkpoint of another job, are found before Spark is started.
        files = gather(context.submission.dependencies, context.spec.storage)
        IMPORTS.hold(files, runs_here=False)
        context.at_end.add(lambda: IMPORTS.release(files))
        context.bring(files)
        spec = context.spec
        packed = pack_job(spec, import_paths(context.settings))
        remote = is_remote(context.checkpointing.folder or "")
        folder = None if remote else claim_folder(context, LOCAL, directory)
        # 3. Spark. A folder on a file system that only Spark knows can be looked at from now on.
        lasting = not all(one.ends_within(FEW_RECORDS) for one in spec.graph.graph.enumerators.values())
        session = job_session(context.settings, context.name, lasting, not remote)
        context.at_end.add(lambda: release_session(session))
        if folder is None:
            folder = claim_folder(context, HadoopStorage(session), directory)
        storage = hadoop_options(session, context.settings.spark)
        if storage != context.spec.storage:
            # What a session or its spark-defaults.conf says of object stores holds for sources and sinks, too.
            context.spec = replace(context.spec, storage=storage)
        ship_files(session, files)
        session.dataSource.register(FiresteelDataSource)
        # 4. The state to begin with, if there is one, and the first attempt.
        restore = find_restore(context, lambda path: _readable(session, path, directory))
        link = CoordinatorLink(directory, folder.sources)
        context.at_end.add(context.commits.end)
        sources = DriverSources(context.spec.graph.graph, folder.sources, restore)
        shared = SharedByAttempts(context, session, folder, directory, files, link, restore, sources)
        return SparkJob(shared, packed if context.spec is spec else None)


def claim_folder(context: JobContext, storage: Storage, directory: str) -> CheckpointFolder:
    """Makes the checkpoint folder this job's. Tasks may have to know more of the job then: its specification is
    replaced."""
    context.checkpointing = context.checkpointing.found(storage)
    durable = context.checkpointing.folder
    backend = backend_name(context.submission.configuration, context.submission.state_backend)
    sources = None
    if storage is not LOCAL:
        # Sources run beside the driver and write plain files.
        sources = os.path.join(directory, "sources")
        _refuse_sources_with_files(context)
    manifest = Manifest.of(context.name, context.spec.graph, backend)
    folder = CheckpointFolder(durable or os.path.join(directory, "checkpoint"), manifest, storage, sources)
    if durable is None:
        return folder
    # Before anything is looked at, let alone changed: another job may be at work there.
    jvm = jvm_process()
    folder.lock(Holder.here(context.name, context.job_id, None if jvm is None else jvm.pid))
    context.at_release.add(folder.release)
    if folder.claim():
        context.goes_on = context.settings.first_attempt > 0
        if restore_path(context.submission.configuration) and not context.goes_on:
            raise CheckpointError(
                f"The job should begin with a savepoint, but its checkpoint folder {durable} holds the state of an "
                "earlier run. Leave the savepoint out to go on from there, or name another folder, or delete it."
            )
        context.checkpoints.restored()
        context.spec = replace(context.spec, restored=True)
        if folder.finished:
            logger.warning(
                "job %r had finished before: nothing is left to do from its checkpoint in %s, and this start reads "
                "nothing. To run the job again, delete that folder or name another one.",
                context.name,
                folder.path,
            )
    if context.commits.used:
        context.spec = replace(context.spec, lineage=job_id_of(folder.commits, context.job_id, storage))
    return folder


def _refuse_sources_with_files(context: JobContext) -> None:
    graph = context.spec.graph.graph
    for node_id, enumerator in graph.enumerators.items():
        if enumerator.keeps_files:
            raise ConfigurationError(
                f"Source {graph.nodes[node_id].name!r} keeps what it has read in the checkpoint folder, which must be "
                f"a folder of this machine, or mounted on it, then; it is {context.checkpointing.folder}."
            )


def _readable(session: SparkSession, path: str, directory: str) -> str:
    """The address of a savepoint: ``path`` itself, or one made of the checkpoint that is there."""
    storage = HadoopStorage(session) if is_remote(path) else LOCAL
    if not is_checkpoint(path, storage):
        return path
    # Loads Arrow, which most jobs need not wait for.
    from firesteel.engine.spark.savepoints import savepoint_of_checkpoint

    target = Place.of(os.path.join(directory, "restored"))
    savepoint_of_checkpoint(session, path, target, storage)
    return target.address
