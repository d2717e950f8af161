"""Starts Spark for a job that is not known yet, and runs a small one in it, so that the next one is quick."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import replace

from firesteel.common import Types
from firesteel.common.configuration import Configuration
from firesteel.common.default_configuration import default_configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.dependencies import Dependencies
from firesteel.engine.job_context import JobContext
from firesteel.engine.settings import Settings
from firesteel.engine.spark.context import start_facts, with_master
from firesteel.engine.spark.engine import SparkEngine
from firesteel.engine.spark.masters import is_local
from firesteel.engine.spark.session import job_session, release_session
from firesteel.engine.spark.warm_spark import detach_spark
from firesteel.engine.spark.warmup import warm_up_soon
from firesteel.errors import SetupError

__all__ = ["start_warm_spark"]

BATCHES = 6
"""So many micro-batches of one record are made. The first one loads Spark's classes, the others run what was loaded
until the JVM has compiled what takes longest."""
_NAMED = ("spark.ui.enabled", "spark.eventLog.enabled")
"""Where these are set, Spark shows or keeps the name of what runs, and that would not be the job's."""


def start_warm_spark() -> None:
    """Starts Spark as a job without settings of its own would, runs a job, and puts Spark aside.

    A SetupError says why that cannot be done with the settings of this machine.
    """
    configuration = default_configuration()
    settings = with_master(Settings.of(configuration))
    if settings.master == "memory" or not is_local(settings.master):
        raise SetupError(f"drivers are started ahead for jobs on this machine only, not for {settings.master}")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        raise SetupError("drivers are not started ahead under spark-submit")
    facts = start_facts(settings)
    if any(facts.get(key) == "true" for key in _NAMED):
        raise SetupError("drivers are not started ahead where Spark has a page or an event log, which name the job")
    before = signal.getsignal(signal.SIGTERM)
    # The first place is for the program's folder, which is not known yet: workers must not look elsewhere before.
    first = sys.path.pop(0)
    try:
        session = job_session(settings, "firesteel", lasting=True)
        release_session(session)
        _run_trial(configuration)
    finally:
        sys.path.insert(0, first)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
    detach_spark(facts)
    warm_up_soon()


def _run_trial(configuration: Configuration) -> None:
    """A job with a keyed stage, of which nothing is left: no files, no line in a list of jobs, no metrics."""
    settings = configuration.to_dict()
    wanted = {key: str(value) for key, value in settings.items() if key.startswith("spark.")}
    wanted |= {"firesteel.batch.max-records": "1", "firesteel.master": "local"}
    env = StreamExecutionEnvironment()
    numbers = env.from_collection(list(range(BATCHES)), Types.INT())
    sums = numbers.key_by(lambda n: n % 2).reduce(lambda a, b: a + b)
    sums.filter(lambda n: False).print()
    submission = replace(
        env._submission("warm-up"),
        configuration=Configuration.from_dict(wanted),
        batch_mode=False,
        state_backend=None,
        job_parameters={},
        dependencies=Dependencies(),
    )
    engine = SparkEngine(Settings.of(submission.configuration))
    context = JobContext(submission, engine.processes_stay)
    try:
        engine.prepare(context).run()
    finally:
        context.at_end.run()
        context.at_release.run()
