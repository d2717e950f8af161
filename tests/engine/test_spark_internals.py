"""What the engine uses of Spark and PySpark beyond their public interfaces, at the start and in sessions. Each row of
docs/spark-internals.md has a test here or in test_spark_internals_of_jobs.py, so that a run with the next version of
Spark shows what broke."""

from __future__ import annotations

import inspect
import signal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyspark
import pyspark.errors.utils
import pyspark.java_gateway
import pytest
from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession

from firesteel.engine.processes import jvm_process
from firesteel.engine.spark import context, home, warm_spark
from firesteel.engine.spark.java import find_java
from firesteel.table.batch import sessions

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


def test_detach_spark(spark: SparkSession) -> None:
    """All that PySpark knows in its classes of what runs."""
    found = {
        name
        for owner in (SparkContext, SparkSession)
        for name, value in vars(owner).items()
        if name.startswith("_") and not name.startswith("__") and not callable(value)
        if not isinstance(value, property | classmethod | cached_property)
    }
    assert found - {"_lock", "_next_accum_id", "_python_includes"} == {name for _, name in warm_spark._STATIC}
    before = [getattr(owner, name) for owner, name in warm_spark._STATIC]
    assert all(before)
    try:
        for owner, name in warm_spark._STATIC:
            setattr(owner, name, None)
        assert SparkSession.getActiveSession() is None
        assert jvm_process() is None
    finally:
        for (owner, name), value in zip(warm_spark._STATIC, before, strict=True):
            setattr(owner, name, value)
    assert SparkSession.builder.getOrCreate().range(3).count() == 3


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


def test_active_session(spark: SparkSession) -> None:
    before = SparkSession._activeSession
    assert before is not None
    frame = sessions.new_frame(spark.newSession(), [(1,)], "a int")
    assert SparkSession._activeSession is before
    active: Any = SparkSession.getActiveSession()
    assert active._jsparkSession.equals(before._jsparkSession)
    moved = sessions.in_session(frame, spark)
    assert moved.sparkSession is spark
    assert [row.a for row in moved.collect()] == [1]


def test_debugging(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark asks the active session once in a process, and finds that nobody wants to know where a call stands."""
    assert spark.conf.get("spark.python.sql.dataFrameDebugging.enabled") == "false"
    monkeypatch.setattr(pyspark.errors.utils, "_enable_debugging_cache", None)
    assert SparkSession.getActiveSession() is not None
    assert not pyspark.errors.utils.is_debugging_enabled()
    # So it decides about the look for the caller.
    assert "is_debugging_enabled()" in inspect.getsource(pyspark.errors.utils._with_origin)


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
    assert context.of_a_session(jvm, "spark.sql.shuffle.partitions")
    assert not context.of_a_session(jvm, "spark.sql.warehouse.dir"), "static"
    assert not context.of_a_session(jvm, "spark.sql.catalog.mine"), "unknown"


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
