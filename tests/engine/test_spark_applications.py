"""Jobs inside a Spark application that is the user's: its session and its settings stay the user's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sparkkit import run_script, write_script

from firesteel.engine.spark.home import spark_home
from firesteel.engine.spark.java import find_java

APPLICATION = """
    import json
    import logging
    import sys
    import threading

    from pyspark import RDD
    from pyspark.sql import SparkSession

    from firesteel.common import Configuration, Types, WatermarkStrategy
    from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource
    from firesteel.datastream.state import ValueStateDescriptor

    logging.basicConfig(stream=sys.stdout, format="LOG %(levelname)s %(message)s")
    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "7").getOrCreate()
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "123")
    spark.range(1).createOrReplaceTempView("mine")


    def snapshot():
        context = spark.sparkContext
        hadoop = context._jsc.hadoopConfiguration()
        return {
            "session": sorted(spark.conf.getAll.items()),
            "context": sorted(context.getConf().getAll()),
            "hadoop": sorted((entry.getKey(), entry.getValue()) for entry in hadoop.iterator()),
            "view": spark.catalog.tableExists("mine"),
            "queries": len(spark.streams.active),
            "group": context.getLocalProperty("spark.jobGroup.id"),
            "same": [
                SparkSession.getActiveSession() is spark,
                SparkSession.builder.getOrCreate() is spark,
                # Which session makes the frame of rdd.toDF().
                RDD.toDF.__closure__[0].cell_contents is spark,
            ],
        }


    class Count(KeyedProcessFunction):
        def open(self, context):
            self.subtask = context.get_index_of_this_subtask()
            self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def process_element(self, value, context):
            self.count.update((self.count.value() or 0) + 1)
            yield context.get_current_key(), self.count.value(), self.subtask


    def run(parallelism, settings, records, read, seen):
        configuration = Configuration.from_dict({"firesteel.batch.max-records": "40", **settings})
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(parallelism)
        source = DataGeneratorSource(lambda n: n % 12, None)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        with numbers.key_by(lambda n: n).process(Count()).execute_and_collect() as results:
            # More than one batch has.
            for _ in range(100):
                records.append(next(results))
            read.wait()
            seen.wait()


    before = snapshot()
    read, seen = threading.Barrier(3), threading.Barrier(3)
    found = [[], []]
    jobs = [
        threading.Thread(target=run, args=(2, {"spark.executor.memory": "1g"}, found[0], read, seen)),
        threading.Thread(target=run, args=(3, {}, found[1], read, seen)),
    ]
    for job in jobs:
        job.start()
    read.wait(300)
    during = snapshot()
    seen.wait(300)
    for job in jobs:
        job.join()
    after = snapshot()

    def counted(records):
        counts = {}
        for key, count, _ in records:
            assert count == counts.get(key, 0) + 1, (key, count, counts)
            counts[key] = count
        return sorted({subtask for _, _, subtask in records})

    print("FOUND", json.dumps([before, during, after, [counted(records) for records in found]]))
"""


def test_an_application_keeps_its_session_while_two_jobs_run_in_it(tmp_path: Path) -> None:
    """A program with a session of its own that knows nothing of Firesteel."""
    # PySpark as it is, but for a JVM that starts faster.
    home = spark_home(find_java())
    assert home is not None
    flags = "-Xmx1g -XX:TieredStopAtLevel=1"
    if home.archive.exists():
        flags += f" -XX:SharedArchiveFile={home.archive}"
    script = write_script(tmp_path, APPLICATION)
    done = run_script(script, SPARK_HOME=str(home.path), FIRESTEEL_JVM_FLAGS=flags, PYSPARK_PYTHON=sys.executable)
    lines = done.stdout.splitlines()
    found = [line.removeprefix("FOUND ") for line in lines if line.startswith("FOUND ")]
    assert found, done.stdout + done.stderr
    before, during, after, subtasks = json.loads(found[0])
    assert dict(before["session"])["spark.sql.shuffle.partitions"] == "7"
    assert before["same"] == [True, True, True]
    assert before["view"]
    assert during == before
    assert after == before
    # Each job had its own number of partitions.
    assert subtasks == [[0, 1], [0, 1, 2]]
    logged = [line for line in lines if line.startswith("LOG WARNING")]
    assert sum("without Firesteel's worker module" in line for line in logged) == 1, logged
    assert sum("spark.executor.memory" in line for line in logged) == 1, logged
    assert not [line for line in lines if line.startswith("LOG ERROR")], lines


STARTED_BY_A_JOB = """
    import json
    from pathlib import Path

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from firesteel.common import Configuration
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.engine.processes import jvm_process
    from firesteel.engine.settings import Settings
    from firesteel.engine.spark.session import get_session

    settings = {
        "firesteel.batch.max-records": "1",
        "spark.sql.streaming.minBatchesToRetain": "3",
        "spark.sql.event.truncate.length": "99",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    with env.from_collection([1, 2]).key_by(lambda n: n).map(lambda n: n).execute_and_collect() as results:
        assert sorted(results) == [1, 2]
    root = SparkSession.builder.getOrCreate()
    ours = get_session(Settings(), "test")
    command = Path(f"/proc/{jvm_process().pid}/cmdline").read_bytes().decode().split(chr(0))
    keys = (
        "spark.sql.adaptive.enabled",
        "spark.sql.codegen.wholeStage",
        "spark.sql.streaming.numRecentProgressUpdates",
        "spark.sql.streaming.minBatchesToRetain",
        "spark.sql.event.truncate.length",
    )
    print("FOUND", json.dumps({
        "master": root.sparkContext.master,
        "name": root.sparkContext.appName,
        "console": root.sparkContext.getConf().get("spark.ui.showConsoleProgress"),
        "memory": [word for word in command if word.startswith("-Xmx")],
        "root": [root.conf.get(key) for key in keys],
        "ours": [ours.conf.get(key) for key in keys],
    }))
"""


def test_the_users_spark_defaults_count(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "# what the user has set for all applications\n"
        "spark.master                    local[1]\n"
        "spark.driver.memory             700m\n"
        "spark.app.name                  the user's\n"
        "spark.ui.showConsoleProgress    true\n"
        "spark.sql.streaming.numRecentProgressUpdates = 7\n"
        "spark.sql.adaptive.enabled      true\n"
    )
    script = write_script(tmp_path, STARTED_BY_A_JOB)
    done = run_script(script, SPARK_CONF_DIR=str(tmp_path / "conf"))
    found = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert found, done.stdout + done.stderr
    seen = json.loads(found[0])
    assert (seen["master"], seen["name"], seen["console"]) == ("local[1]", "the user's", "true")
    assert seen["memory"] == ["-Xmx700m"]
    # The first session is the user's. A setting of the job is for the job's session, a static one for all.
    assert seen["root"] == ["true", "true", "7", "100", "99"]
    assert seen["ours"] == ["false", "false", "7", "100", "99"]
