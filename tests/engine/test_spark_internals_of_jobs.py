"""What the engine uses of Spark and PySpark beyond their public interfaces while jobs run: workers, queries and their
folders. Each row of docs/spark-internals.md has a test here or in test_spark_internals.py."""

from __future__ import annotations

import gc
import importlib
import inspect
import io
import json
import logging
import os
import struct
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import py4j.clientserver
import pyarrow as pa
import pyspark
import pyspark.java_gateway
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql.functions import hash as spark_sql_hash
from pyspark.sql.types import LongType, StringType, StructField, StructType
from sparkkit import AppendSink, descendants, eventually, notes, process_table, spark_env

from firesteel.common import CheckpointStatistics
from firesteel.datastream import KeyedProcessFunction
from firesteel.durable.cells import HEADER
from firesteel.engine.facade import JobFacade
from firesteel.engine.manifest import stored_folder
from firesteel.engine.query_files import check_query
from firesteel.engine.settings import Settings
from firesteel.engine.spark import data_source, errors, hadoop, output, savepoints, state_frames
from firesteel.engine.spark.jmx import JmxReporter
from firesteel.engine.spark.session import get_session
from firesteel.engine.spark.session_settings import FILE_MANAGER
from firesteel.gelly import values
from firesteel.gelly.hashing import spark_hash
from firesteel.gelly.supersteps import release
from firesteel.metrics.reporters import ReporterSettings, Sample
from firesteel.runtime.partitions import murmur3_int, partition_tokens
from firesteel.runtime.state.spark_store import SparkStore


class Inspector(KeyedProcessFunction):
    """Looks at the calls it is called by, once in each batch."""

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        from pyspark import SparkFiles, TaskContext

        frames = [info.frame for info in inspect.stack()]
        task = TaskContext.get()
        assert task is not None
        host = [one.f_locals["partition"] for one in frames if one.f_code.co_name == "_serve"]
        stores = [one.f_locals["store"] for one in frames if isinstance(one.f_locals.get("store"), SparkStore)]
        print(f"a function of partition {task.partitionId()}", file=sys.stderr, flush=True)
        yield {
            "partition": task.partitionId(),
            "host": host,
            "main": Path(sys.modules["__main__"].__file__ or "").name,
            "pipelined": [store._client is not None for store in stores],
            "deferred": ["_receive_proto_message" in vars(store._client) for store in stores],
            "on arrow": "run_task" in [one.f_code.co_name for one in frames],
            "frozen": gc.get_freeze_count(),
            "processes": [value[1], os.getpid()],
            "on worker": (SparkFiles._is_running_on_worker, os.path.isdir(str(SparkFiles._root_directory))),
        }


@dataclass
class Ran:
    """What a small job has left."""

    seen: list[dict[str, Any]]
    folder: Path
    stderr: str
    statistics: CheckpointStatistics
    job: JobFacade

    @property
    def query(self) -> str:
        return str(self.folder / "query")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("internals") / "checkpoint"
    with pytest.MonkeyPatch.context() as patch:
        shown = io.StringIO()
        patch.setattr(sys, "stderr", shown)
        env = spark_env(2, {"firesteel.checkpoint.dir": folder, "firesteel.batch.max-records": 20})
        read = env.from_collection(list(range(40))).map(lambda n: (n, os.getpid()))
        inspected = read.key_by(lambda one: one[0]).process(Inspector())
        inspected.add_sink(AppendSink(folder.parent, "seen"))
        client: Any = env.execute_async()
        client.get_job_execution_result().result()
        eventually(lambda: all(f"a function of partition {n}\n" in shown.getvalue() for n in (0, 1)))
        text = shown.getvalue()
    seen = notes(folder.parent, "seen")
    return Ran(seen, folder, text, client.get_checkpoint_statistics().result(), client.facade)


# Settings that a job leaves


def test_files_of_settings(spark: SparkSession, ran: Ran) -> None:
    """After a job's first batches nobody knows where Hadoop's settings came from, and they still count."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    assert settings.size() > 100
    assert settings.get("io.file.buffer.size") is not None
    assert settings.getPropertySources("io.file.buffer.size") is None
    settings.set("firesteel.test", "1")
    assert list(settings.getPropertySources("firesteel.test")) == ["programmatically"]
    settings.unset("firesteel.test")


def test_file_manager(spark: SparkSession, ran: Ran) -> None:
    key, value = FILE_MANAGER
    assert spark.conf.get(key) == value
    jvm: Any = spark.sparkContext._jvm
    made = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(
        jvm.org.apache.hadoop.fs.Path(ran.query), spark._jsparkSession.sessionState().newHadoopConf()
    )
    assert made.getClass().getName() == value
    assert made.isLocal()


# Workers


def test_worker_main(ran: Ran) -> None:
    """A task's first bytes say its partition, and the host of that partition runs it."""
    assert {one["partition"] for one in ran.seen} == {0, 1}
    assert [one for one in ran.seen if one["host"] != [one["partition"]]] == []


def test_daemon(ran: Ran) -> None:
    assert {one["main"] for one in ran.seen} == {"daemon.py"}
    source = inspect.getsource(importlib.import_module("pyspark.daemon"))
    assert "def manager()" in source
    # Workers collect garbage after every task: what the daemon has loaded is none of it.
    assert "gc.collect()" in source
    assert min(one["frozen"] for one in ran.seen) > 50_000


def test_python_launcher(spark: SparkSession, ran: Ran) -> None:
    """Spark starts Python by a path and ``-m``, and what is forked instead of it is what it wanted."""
    assert Path(spark.sparkContext.pythonExec).parent.name == "forks"
    table = process_table()
    ours = {pid: table[pid] for pid in descendants(os.getpid())}
    (server,) = (pid for pid, (_, command) in ours.items() if "-m firesteel.engine.spark.fork_server" in command)
    forks = [command.split()[2:] for parent, command in ours.values() if parent == server]
    assert ["firesteel.engine.spark.daemon", "pyspark.worker"] in forks
    assert ["pyspark.daemon", "pyspark.sql.worker.plan_data_source_read"] in forks
    # Those of a query are gone with it: see test_spark_life.


def test_one_process(ran: Ran) -> None:
    """Tasks of the source's stage and of later ones have the same variables, and so the same processes."""
    assert len({process for one in ran.seen for process in one["processes"]}) == 2


def test_stage_functions(ran: Ran) -> None:
    """Tasks of later stages get Arrow batches. That both ways give the same: unit/test_arrow_tasks.py."""
    assert ran.seen
    assert [one for one in ran.seen if not one["on arrow"]] == []


def test_state_client(ran: Ran) -> None:
    """Tasks have PySpark's client, and send requests ahead. That both ways give the same: test_spark_store.py."""
    assert ran.seen
    assert [one for one in ran.seen if not one["pipelined"] or not all(one["pipelined"])] == []
    assert [one for one in ran.seen if not all(one["deferred"])] == []


def test_shipped_files(ran: Ran) -> None:
    assert {tuple(one["on worker"]) for one in ran.seen} == {(True, True)}


def test_worker_output(ran: Ran) -> None:
    """What functions write arrives, and what PySpark's processes write does not."""
    for partition in (0, 1):
        assert f"a function of partition {partition}\n" in ran.stderr
    assert "TransformWithStateInPandas" not in ran.stderr
    module = importlib.import_module("pyspark.sql.streaming.transform_with_state_driver_worker")
    assert "Streaming TransformWithStateInPandas Python worker" in inspect.getsource(module)
    assert output._CHATTER.match("Starting Streaming TransformWithStateInPandas Python worker.\n")


class ClosedLine(io.BytesIO):
    """What a source's process reads from: the query's first message, then the line's end."""

    def __init__(self, end: type[Exception] | None) -> None:
        super().__init__(struct.pack(">i", 100))
        self._end = end

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data and self._end is not None:
            raise self._end
        return data


@pytest.mark.parametrize("end", [None, ConnectionResetError])
def test_source_stop(monkeypatch: pytest.MonkeyPatch, end: type[Exception] | None) -> None:
    """A source's process sees the end of its query as the end of its input, and leaves without a word."""
    runner = importlib.import_module("pyspark.sql.streaming.python_streaming_source_runner")
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    nothing: dict[str, Any] = dict.fromkeys(("check_python_version", "setup_spark_files", "setup_memory_limits"))
    for name in (*nothing, "handle_worker_exception"):
        monkeypatch.setattr(runner, name, lambda *_: None)
    monkeypatch.setattr(runner, "read_command", lambda *_: data_source.FiresteelDataSource({}))
    monkeypatch.setattr(runner, "utf8_deserializer", SimpleNamespace(loads=lambda _: "{}"))
    monkeypatch.setattr(runner, "_parse_datatype_json_string", lambda _: StructType([]))
    monkeypatch.setattr(data_source, "job_for_tasks", lambda _: None)
    monkeypatch.setattr(runner, "_streamReader", lambda *_: data_source._StreamReader(""))
    with pytest.raises(SystemExit):
        runner.main(ClosedLine(end), io.BytesIO())
    assert left == [0]


# Queries and their folders


def test_callbacks(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    # This thread has no connection: it was not called.
    assert hasattr(server.getCallbackClient(), "getPerThreadConnection")
    server.getCallbackClient().getPerThreadConnection()
    assert py4j.clientserver.logger is logging.getLogger("py4j.clientserver")


def test_jmx(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    reporter = JmxReporter()
    reporter.open(ReporterSettings("beans", jvm=jvm), list)
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()

    def array(kind: Any, elements: Sequence[Any]) -> Any:
        made = spark.sparkContext._gateway.new_array(kind, len(elements))  # type: ignore[union-attr]
        for place, one in enumerate(elements):
            made[place] = one
        return made

    def ask(method: str, *given: Any) -> Any:
        # By the interface: Py4J would look for the method in the server's class, which is not public.
        find = jvm.java.lang.Class.forName
        names = ["java.lang.String" if isinstance(one, str) else "javax.management.ObjectName" for one in given]
        found = find("javax.management.MBeanServer").getMethod(method, array(jvm.java.lang.Class, [*map(find, names)]))
        return found.invoke(server, array(jvm.java.lang.Object, given))

    name = jvm.javax.management.ObjectName("org.apache.flink:name=web.jobmanager.my_job.uptime,type=gauges")
    for value in (7, 8.5):
        reporter.report([Sample("jobmanager.job", "uptime", value, prefix="web.jobmanager.my job")])
        assert ask("getAttribute", name, "Value") == value
    reporter.close()
    assert not ask("isRegistered", name)


def test_query_progress(ran: Ran) -> None:
    assert ran.statistics.completed >= 2
    latest = ran.statistics.latest_completed
    assert latest is not None
    assert latest.duration_ms
    assert latest.checkpointed_size
    first, *_ = ran.job.batches().batches
    assert first.parts.keys() >= {
        *("latest_offset", "planning", "wal_commit", "tasks", "results", "add_batch", "commit_offsets")
    }
    assert first.duration_ms >= first.parts["tasks"] > 0
    keyed = next(operator for operator in ran.job.metrics().operators if operator.stage == 1)
    assert keyed.records_in == 40
    assert all(one.bytes_in and one.frames_in and one.busy_ms for one in keyed.subtasks)


def test_query_files(ran: Ran) -> None:
    assert check_query(ran.query, 1, 2) is None
    assert check_query(ran.query, 2, 2) == "its state directory query/state/1/0 is missing"
    assert check_query(ran.query, 1, 3) == "its state directory query/state/0/2 is missing"


def test_offset_log(ran: Ran) -> None:
    folder = stored_folder(str(ran.folder))
    assert folder.last_commit == folder.last_batch is not None
    offset = folder.offset(folder.last_commit)
    assert offset["last"] is True
    assert offset["batch"] == folder.last_commit + 1


def test_state_reader(spark: SparkSession, ran: Ran) -> None:
    batch = stored_folder(str(ran.folder)).last_commit
    assert batch is not None
    rows = savepoints._cells(get_session(Settings(), "tests"), ran.query, 0, batch).collect()
    headers = [row.r for row in rows if bytes(row.k) == HEADER]
    assert sorted(headers) == sorted(partition_tokens(2))


def test_partitions(spark: SparkSession) -> None:
    tokens = partition_tokens(7)
    listed = ", ".join(f"{token}" for token in tokens)
    found = spark.sql(f"SELECT t, hash(t) AS h, pmod(hash(t), 7) AS p FROM (SELECT explode(array({listed})) AS t)")
    assert [(row.t, row.h, row.p) for row in found.collect()] == [
        (token, murmur3_int(token), place) for place, token in enumerate(tokens)
    ]


def test_hadoop_files(spark: SparkSession, tmp_path: Path) -> None:
    storage = hadoop.HadoopStorage(spark)
    path = f"file://{tmp_path}/folder/file"
    storage.write(path, b"one")
    storage.write(path, b"two")
    assert storage.read(path) == b"two"
    assert storage.create(path, b"three") is False
    assert storage.sizes(f"file://{tmp_path}/folder") == {"file": 3}
    with pytest.raises(FileNotFoundError):
        storage.read(path + ".no")
    storage.delete(f"file://{tmp_path}/folder")
    assert not storage.exists(path)


def test_arrow_schema() -> None:
    schema = state_frames.from_arrow_schema(pa.schema([("key", pa.string()), ("value", pa.int64())]))
    assert schema.simpleString() == "struct<key:string,value:bigint>"
    assert values.to_arrow_type(values.from_arrow_type(pa.int64())) == pa.int64()


def test_local_checkpoints(spark: SparkSession) -> None:
    context = spark.sparkContext
    before = set(context._jsc.getPersistentRDDs())
    frame = spark.range(3).localCheckpoint()
    assert len(set(context._jsc.getPersistentRDDs()) - before) == 1
    release(frame)
    assert set(context._jsc.getPersistentRDDs()) <= before


def test_hashes(spark: SparkSession) -> None:
    """A message to a vertex that is no neighbour has to find its block."""
    for kind, some in ((LongType(), [0, -1, 1 << 40, -(1 << 62)]), (StringType(), ["", "a", "abcde", "äöü€𝄞"])):
        frame = spark.createDataFrame([(one,) for one in some], StructType([StructField("v", kind)]))
        assert [row[0] for row in frame.select(spark_sql_hash("v")).collect()] == [
            spark_hash(one, kind) for one in some
        ]


def test_error_texts(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="on purpose") as caught:
        spark.sql("SELECT raise_error('on purpose')").collect()
    text = errors._whole_text(caught.value)
    assert "\tat org.apache.spark." in text
    jars = Path(pyspark.__file__).parent / "jars"
    (jar,) = jars.glob("spark-common-utils_*.jar")
    with zipfile.ZipFile(jar) as archive:
        known = json.loads(archive.read("error/error-conditions.json"))
    assert "CANNOT_LOAD_STATE_STORE" in known


def test_spark_writers(spark: SparkSession, tmp_path: Path) -> None:
    from firesteel.connectors.spark.targets import _Database, _Hadoop

    files = _Hadoop(spark, str(tmp_path))
    files.write(f"{tmp_path}/inner/one", b"1")
    assert (files.read(f"{tmp_path}/inner/one"), list(files.under(str(tmp_path)))) == (b"1", [f"{tmp_path}/inner/one"])
    assert spark._jvm is not None
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", os.devnull)
    database = _Database(spark, f"jdbc:derby:memory:internals{os.getpid()};create=true", {})
    assert database.quoted("n") == '"n"'
    database.close()
