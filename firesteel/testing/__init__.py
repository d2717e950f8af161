"""The kit for testing functions and whole programs in memory, without Spark. See docs/testing-your-functions.md.

* :class:`OneInputHarness` and :class:`TwoInputHarness` run one function, step by step.
* :func:`run_pipeline` runs a program and gives its results as lists; :class:`ListSource` feeds it from a script.
* :class:`CollectionSink` keeps what a sink got in a list, exactly once.
* :class:`Crash` fails a job on purpose, :class:`CommitCrashes` inside the commit protocol of its sinks.
"""

from firesteel.testing.collection_sink import CollectionSink
from firesteel.testing.commit_crashes import CommitCrashes, CrashPoint
from firesteel.testing.crash import Crash, CrashError
from firesteel.testing.harness import Harness
from firesteel.testing.job_of_function import memory_environment
from firesteel.testing.one_input import OneInputHarness
from firesteel.testing.pipeline import collect, run_pipeline
from firesteel.testing.script_source import ListSource
from firesteel.testing.snapshot import Snapshot
from firesteel.testing.steps import ProcessingTime, Record, Step, Watermark
from firesteel.testing.two_input import TwoInputHarness

__all__ = [
    "CollectionSink",
    "CommitCrashes",
    "Crash",
    "CrashError",
    "CrashPoint",
    "Harness",
    "ListSource",
    "OneInputHarness",
    "ProcessingTime",
    "Record",
    "Snapshot",
    "Step",
    "TwoInputHarness",
    "Watermark",
    "collect",
    "memory_environment",
    "run_pipeline",
]
