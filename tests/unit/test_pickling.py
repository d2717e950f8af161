"""The job on its way to a worker: what cannot travel is named, and classes of a script arrive."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import MapFunction, StreamExecutionEnvironment
from firesteel.engine.pickling import pickle_job
from firesteel.errors import SerializationError
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.job_spec import JobSpec

LOCK = threading.Lock()


def job_of(build: Any) -> JobSpec:
    env = StreamExecutionEnvironment.get_execution_environment()
    build(env.from_collection([1]))
    return JobSpec("id", "job", build_job_graph(build_stream_graph(env.program, 1)))


def refusal(build: Any) -> str:
    with pytest.raises(SerializationError) as caught:
        pickle_job(job_of(build))
    assert caught.value.__cause__ is not None
    return str(caught.value)


def test_a_job_survives_the_journey() -> None:
    offset = 41
    payload = pickle_job(job_of(lambda s: s.map(lambda n: n + offset).name("add").print()))
    job = payload.load()
    assert (job.job_id, job.name) == ("id", "job")
    spec: Any = next(node.spec for node in job.graph.graph.nodes.values() if node.name == "add")
    assert spec.function.map(1) == 42
    assert payload.load() is not job


def test_a_name_in_a_closure() -> None:
    lock = threading.Lock()
    text = refusal(lambda s: s.map(lambda n: (lock, n)).name("locking").print())
    assert text.startswith(f"The function of operator 'locking', built at {__file__}:")
    assert "cannot pickle '_thread.lock' object" in text
    assert "The culprit is 'lock', a lock: <unlocked _thread.lock object" in text
    assert text.endswith("Create such objects in open() instead of holding them in the function.")


def test_an_attribute_of_a_function_object() -> None:
    class Holding(MapFunction):
        def __init__(self) -> None:
            self.fine = 1
            self.connection = threading.Lock()

        def map(self, value: Any) -> Any:
            return value

    text = refusal(lambda s: s.map(Holding()).print())
    assert "The culprit is 'self.connection', a lock" in text


def test_a_key_selector() -> None:
    lock = threading.Lock()
    text = refusal(lambda s: s.key_by(lambda n: (n, lock)).map(str).name("behind").print())
    assert text.startswith(f"The key selector in front of operator 'behind', built at {__file__}:")
    assert "The culprit is 'lock', a lock" in text


def test_a_partitioner() -> None:
    lock = threading.Lock()
    text = refusal(lambda s: s.partition_custom(lambda key, n: hash(lock), str).print().name("end"))
    assert text.startswith("The partitioner or key selector in front of operator 'end'")
    assert "The culprit is 'lock', a lock" in text


def test_elements_of_a_collection() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(SerializationError, match=r"from_collection\(\): element <unlocked _thread\.lock.*cannot be"):
        env.from_collection([1, LOCK, 2])


SCRIPT = """
import dataclasses
from firesteel.common import Configuration
from firesteel.datastream import MapFunction, StreamExecutionEnvironment


@dataclasses.dataclass(frozen=True)
class Click:
    user: str
    count: int


class Double(MapFunction):
    def map(self, click):
        return Click(click.user, 2 * click.count)


FACTOR = 10


def times(click):
    return Click(click.user, FACTOR * click.count)


config = Configuration().set_string("firesteel.master", "memory")
env = StreamExecutionEnvironment.get_execution_environment(config)
env.set_parallelism(2)
clicks = env.from_collection([Click("ada", 1), Click("bob", 2), Click("ada", 3)])
(clicks.map(Double()).map(times).key_by(lambda click: click)
       .reduce(lambda a, b: a).key_by(lambda click: click.user)
       .reduce(lambda a, b: Click(a.user, a.count + b.count)).print())
env.execute()
"""


def test_classes_of_a_script_are_records_keys_and_functions(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, env=os.environ.copy(), check=False
    )
    assert run.returncode == 0, run.stderr
    lines = sorted(line.split("> ")[1] for line in run.stdout.splitlines())
    assert lines == ["Click(user='ada', count=20)", "Click(user='ada', count=80)", "Click(user='bob', count=40)"]


LOADER = """
import pickle, sys
payload = pickle.load(open(sys.argv[1], "rb"))
job = payload.load()
import __main__
print(__main__.Click("x", 1))
node = [n for n in job.graph.graph.nodes.values() if n.name == "Map"][0]
print(node.spec.function.map(__main__.Click("x", 1)))
"""

WRITER = (
    SCRIPT.split("config =")[0]
    + """
import pickle, sys
from firesteel.engine.pickling import pickle_job
from firesteel.graph.job_graph import build_job_graph
from firesteel.graph.stream_graph import build_stream_graph
from firesteel.runtime.job_spec import JobSpec
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([Click("a", 1)]).map(Double()).print()
payload = pickle_job(JobSpec("id", "job", build_job_graph(build_stream_graph(env.program, 1))))
pickle.dump(payload, open(sys.argv[1], "wb"))
"""
)


def test_a_worker_finds_the_scripts_classes_in_its_own_main(tmp_path: Path) -> None:
    for name, text in (("writer.py", WRITER), ("loader.py", LOADER)):
        (tmp_path / name).write_text(text)
        run = subprocess.run(
            [sys.executable, str(tmp_path / name), str(tmp_path / "job.pickle")],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["Click(user='x', count=1)", "Click(user='x', count=2)"]


def test_building_a_program_leaves_pyspark_alone() -> None:
    script = (
        "import sys\n"
        "from firesteel.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).map(str).print()\n"
        "env.get_execution_plan()\n"
        "print('pyspark' in sys.modules, 'firesteel.engine' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert run.stdout == "False False\n"


def test_starting_a_job_does_not_wait_for_arrow() -> None:
    """Arrow and pandas take most of a second to load. They are loaded while Spark starts, or later."""
    code = (
        "import sys, firesteel.datastream, firesteel.engine.spark.engine\n"
        "print([name for name in ('pyarrow', 'pandas') if name in sys.modules])\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
