"""What the engine uses of Spark and PySpark beyond their public interfaces: one test for each row of
docs/spark-internals.md, so that a run with the next version of Spark shows what broke."""

from __future__ import annotations

import gc
import importlib
import inspect
import io
import json
import logging
import os
import re
import signal
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
from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import hash as spark_sql_hash
from pyspark.sql.types import LongType, StringType, StructField, StructType
from sparkkit import REPOSITORY, AppendSink, eventually, notes, spark_env

from firesteel.common import CheckpointStatistics
from firesteel.datastream import KeyedProcessFunction
from firesteel.durable.cells import HEADER
from firesteel.engine.facade import JobFacade
from firesteel.engine.manifest import stored_folder
from firesteel.engine.processes import jvm_process
from firesteel.engine.query_files import check_query
from firesteel.engine.settings import Settings
from firesteel.engine.spark import context, data_source, errors, hadoop, home, output, savepoints, state_frames
from firesteel.engine.spark.java import find_java
from firesteel.engine.spark.jmx import JmxReporter
from firesteel.engine.spark.session import get_session
from firesteel.engine.spark.session_settings import FILE_MANAGER
from firesteel.gelly import values
from firesteel.gelly.hashing import spark_hash
from firesteel.gelly.supersteps import release
from firesteel.metrics.reporters import ReporterSettings, Sample
from firesteel.runtime.partitions import murmur3_int, partition_tokens
from firesteel.runtime.state.spark_store import SparkStore

PAGE = REPOSITORY / "docs" / "spark-internals.md"

SIGNS = re.compile(
    r"\b_(?:jvm|jsc|gateway|gateway_client|active_spark_context|ensure_initialized|jsparkSession|sc|stackTrace"
    r"|mapStateClient|root_directory|is_running_on_worker|conf\b(?=.*SparkContext))\b"
    r"|pyspark\.(?:worker|daemon|java_gateway|serializers)|StateMessage_pb2|pandas\.types|MODULE\$|RDD\.toDF"
    r"|org\.apache\.(?!flink|avro)|com\.codahale|\"statestore\"|recentProgress"
)
"""By these a module shows that it touches what is not public."""


class Inspector(KeyedProcessFunction):
    """Looks at the calls it is called by, once in each batch."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
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
        inspected = env.from_collection(list(range(40))).key_by(lambda n: n).process(Inspector())
        inspected.add_sink(AppendSink(folder.parent, "seen"))
        client: Any = env.execute_async()
        client.get_job_execution_result().result()
        eventually(lambda: all(f"a function of partition {n}\n" in shown.getvalue() for n in (0, 1)))
        text = shown.getvalue()
    seen = notes(folder.parent, "seen")
    return Ran(seen, folder, text, client.get_checkpoint_statistics().result(), client.facade)


# The start of Spark


def test_jvm_start() -> None:
    """PySpark starts the JVM by what stands in its module, and keeps the connection in the class."""
    gateway = pyspark.java_gateway
    assert callable(gateway.Popen)
    assert gateway.tempfile.mkdtemp
    source = inspect.getsource(gateway.launch_gateway)
    assert "Popen(command" in source
    assert "tempfile.mkdtemp()" in source
    assert "PYSPARK_GATEWAY_PORT" in source
    assert next(iter(inspect.signature(SparkContext._ensure_initialized).parameters)) == "instance"


def test_submit_settings(spark: SparkSession) -> None:
    """Settings reach Spark by a file that spark-submit reads: nothing else brings them."""
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.python.daemon.module") == "firesteel.engine.spark.daemon"


def test_spark_home(spark: SparkSession) -> None:
    made = home.spark_home(find_java())
    assert made is not None
    options = made.arguments.read_text()
    assert "--add-opens" in options
    assert any(file.name.startswith("spark-core") for file in (made.path / "jars").iterdir())
    # It is the one that runs.
    jvm = jvm_process()
    assert jvm is not None
    command = Path(f"/proc/{jvm.pid}/cmdline").read_bytes().decode().split("\0")
    assert f"@{made.arguments}" in command
    assert "org.apache.spark.deploy.SparkSubmit" in command


def test_interrupts(spark: SparkSession) -> None:
    """PySpark's handler of Ctrl-C, which cancels all jobs, is not installed."""
    handler = signal.getsignal(signal.SIGINT)
    assert not getattr(handler, "__module__", "").startswith("pyspark")
    assert "signal.signal(signal.SIGINT" in inspect.getsource(SparkContext)


def test_running_context(spark: SparkSession) -> None:
    active = SparkContext._active_spark_context
    assert active is spark.sparkContext
    assert active._jvm is not None
    assert active._jsc.sc().isStopped() is False
    assert active._conf.get("spark.app.name")
    jvm = jvm_process()
    assert jvm is not None
    assert jvm.poll() is None
    assert jvm.stdin is not None


def test_remove_with_jvm(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    hooks = jvm.org.apache.spark.util.ShutdownHookManager
    folder = jvm.java.io.File("/no/such/folder")
    hooks.registerShutdownDeleteDir(folder)
    assert hooks.hasShutdownDeleteDir(folder)
    hooks.removeShutdownDeleteDir(folder)


def test_installed_sources(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    companion = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$")
    builders = getattr(companion, "MODULE$").dataSourceBuilders()
    assert not builders.isEmpty(), "Spark would look for installed sources, in a process, for every job"


def test_files_of_settings(spark: SparkSession, ran: Ran) -> None:
    """After a job's first batches nobody knows where Hadoop's settings came from, and they still count."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    assert settings.size() > 100
    assert settings.get("io.file.buffer.size") is not None
    assert settings.getPropertySources("io.file.buffer.size") is None
    settings.set("firesteel.test", "1")
    assert list(settings.getPropertySources("firesteel.test")) == ["programmatically"]
    settings.unset("firesteel.test")


def test_close_stores(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    assert jvm.java.lang.Class.forName("org.apache.spark.sql.execution.streaming.state.StateStore$").getMethod(
        "stop", None
    )


# Sessions


def test_new_session(spark: SparkSession) -> None:
    users = SparkSession.builder.getOrCreate()
    assert spark is not users
    assert spark.sparkContext is users.sparkContext
    active, before = SparkSession.getActiveSession(), RDD.toDF
    try:
        spark.newSession()
    finally:
        RDD.toDF = before
    assert SparkSession.getActiveSession() is active
    spark.conf.set("firesteel.of.this.session", "1")
    assert users.conf.get("firesteel.of.this.session", None) is None
    spark.conf.unset("firesteel.of.this.session")


def test_to_df(spark: SparkSession) -> None:
    before = RDD.toDF
    try:
        other = spark.newSession()
        (bound,) = RDD.toDF.__closure__ or ()
        assert bound.cell_contents is other
    finally:
        RDD.toDF = before


def test_sql_settings(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert context._of_a_session(jvm, "spark.sql.shuffle.partitions")
    assert not context._of_a_session(jvm, "spark.sql.warehouse.dir"), "static"
    assert not context._of_a_session(jvm, "spark.sql.catalog.mine"), "unknown"


def test_file_manager(spark: SparkSession, ran: Ran) -> None:
    key, value = FILE_MANAGER
    assert spark.conf.get(key) == value
    jvm: Any = spark.sparkContext._jvm
    made = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.create(
        jvm.org.apache.hadoop.fs.Path(ran.query), spark._jsparkSession.sessionState().newHadoopConf()
    )
    assert made.getClass().getName() == value
    assert made.isLocal()


def test_local_files(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop's own local file system, but for the mode of files, which it sets without a process."""
    jvm: Any = spark.sparkContext._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    files = jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf)
    assert files.getClass().getName() == home.LOCAL_FILES[1]
    assert files.getClass().getSuperclass().getName() == "org.apache.hadoop.fs.LocalFileSystem"
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "draft"))
    files.create(path, True).close()
    files.setPermission(path, jvm.org.apache.hadoop.fs.permission.FsPermission("0640"))
    assert (tmp_path / "draft").stat().st_mode & 0o777 == 0o640
    assert files.rename(path, jvm.org.apache.hadoop.fs.Path(str(tmp_path / "file")))
    assert sorted(file.name for file in tmp_path.iterdir()) == [".file.crc", "file"]


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


def test_source_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source's process sees the end of its query as the end of its input."""
    runner = importlib.import_module("pyspark.sql.streaming.python_streaming_source_runner")
    seen: list[Any] = []
    reader = SimpleNamespace(stop=lambda: seen.append(sys.exc_info()[0]))
    nothing: dict[str, Any] = dict.fromkeys(("check_python_version", "setup_spark_files", "setup_memory_limits"))
    for name in (*nothing, "handle_worker_exception"):
        monkeypatch.setattr(runner, name, lambda *_: None)
    monkeypatch.setattr(runner, "read_command", lambda *_: data_source.FiresteelDataSource({}))
    monkeypatch.setattr(runner, "utf8_deserializer", SimpleNamespace(loads=lambda _: "{}"))
    monkeypatch.setattr(runner, "_parse_datatype_json_string", lambda _: StructType([]))
    monkeypatch.setattr(runner, "_streamReader", lambda *_: reader)
    with pytest.raises(SystemExit):
        runner.main(io.BytesIO(struct.pack(">i", 100)), io.BytesIO())
    assert seen == [EOFError]


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


# The page


def rows() -> dict[str, str]:
    """The contacts of the page, with their modules."""
    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(table) == len(dict(table)), "a contact is listed twice"
    return dict(table)


def test_the_page_lists_what_is_tested() -> None:
    tests = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert set(rows()) == {name for name in tests if not name.startswith("the_page")}


def test_the_page_lists_all_modules_that_touch_spark_inside() -> None:
    listed = set(re.findall(r"`([\w/]+\.py)`", " ".join(rows().values())))
    found = set()
    for path in (REPOSITORY / "firesteel").rglob("*.py"):
        code = re.sub(r'"""(?:.|\n)*?"""', "", path.read_text(encoding="utf-8"))
        if SIGNS.search(code):
            found.add(str(path.relative_to(REPOSITORY / "firesteel")))
    assert found - listed == set()
    assert [one for one in listed if not (REPOSITORY / "firesteel" / one).exists()] == []
