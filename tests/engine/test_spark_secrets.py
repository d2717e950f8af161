"""What jobs on Spark show: to other users of the machine nothing that they keep, and no secrets; in the log, two lines
each."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from sparkkit import WORD_COUNT, WORD_COUNT_LINES, run_script, without_subtask, write_script

PROGRAM = (
    """
    import hashlib, json, logging, os, sys, time
    from pathlib import Path
    from pyspark import SparkContext
    from firesteel.common import Configuration, Encoder, Secret, WatermarkStrategy
    from firesteel.datastream import KeyedProcessFunction, SinkFunction, StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource
    from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy

    logging.basicConfig(level=logging.INFO)
    os.umask(0o022)
    folder, passwords = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())

    class Service(SinkFunction):
        def __init__(self, password):
            self.password = password

        def invoke(self, value, context):
            assert self.password

    class Calls(KeyedProcessFunction):
        def __init__(self, *secrets):
            self.secrets = secrets

        def process_element(self, value, ctx):
            yield hashlib.sha256("".join(secret.reveal() for secret in self.secrets).encode()).hexdigest()

    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({
        "spark.hadoop.fs.s3a.secret.key": passwords["key"],
        "firesteel.spark.ui": "true",
        "spark.ui.port": "0",
        "firesteel.checkpoint.dir": f"{folder}/checkpoints/job",
    }))
    env.set_parallelism(2)
    source = DataGeneratorSource(lambda n: n, 10**9, 200)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    secrets = Secret(passwords["held"]), Secret.from_environment("SERVICE_PASSWORD")
    called = numbers.key_by(lambda n: n % 3).process(Calls(*secrets))
    called.add_sink(Service(passwords["plain"]))
    files = FileSink.for_row_format(f"{folder}/output", Encoder.simple_string_encoder())
    called.sink_to(files.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build())
    job = env.execute_async("secrets")
    while not job.inbox.progress.records:
        time.sleep(0.05)
    job.stop_with_savepoint(False, f"{folder}/savepoints").result()
    job.get_job_execution_result().result()
    context = SparkContext._active_spark_context
    process, local = context._gateway.proc.pid, Path(context.getConf().get("spark.local.dir"))
    print(json.dumps({
        "command": Path(f"/proc/{process}/cmdline").read_bytes().decode(),
        "key": context._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
        "local": [str(local), oct(local.stat().st_mode & 0o777)],
        "temporary": context._jvm.java.lang.System.getProperty("java.io.tmpdir"),
        "blocks": [str(path) for path in local.glob("blockmgr-*")],
        "settings": [str(path) for path in local.glob("settings-*")],
    }))
"""
    + WORD_COUNT
)
"""A job with secrets in every place that a program has for them, and one after it, with a log of level INFO."""

PASSWORDS = {name: f"{name}-hunter2" for name in ("key", "held", "plain", "variable")}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("secrets")
    given = folder / "passwords"
    given.write_text(json.dumps(PASSWORDS))
    program = write_script(folder, PROGRAM)
    done = run_script(program, str(folder), str(given), SERVICE_PASSWORD=PASSWORDS["variable"])
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stderr
    found, _, printed = done.stdout.partition("\n")
    return folder, {**json.loads(found), "printed": printed, "log": done.stderr.splitlines()}


START = r"job 'word count' \([0-9a-f]{32}\) starts in STREAMING mode, parallelism 2, on local\[\d+\]"


def test_a_job_logs_one_line_at_its_start_and_one_at_its_end(ran: tuple[Path, dict[str, Any]]) -> None:
    _, known = ran
    assert without_subtask(known["printed"]) == WORD_COUNT_LINES
    log: list[str] = known["log"]
    ours = [line for line in log if line.startswith("INFO:firesteel:") and "'word count'" in line]
    assert len(ours) == 2, log
    assert re.fullmatch(rf"INFO:firesteel:{START}, Spark's page at http://(127\.0\.0\.1|localhost):\d+", ours[0])
    end = r"INFO:firesteel:job 'word count' finished after [\d.]+ s: 3 records, [\d,]+ records/s, \d+ batches"
    assert re.fullmatch(end, ours[1])
    # Python's root logger at INFO hears py4j too; Spark itself says nothing.
    spark = re.compile(r"\d\d:\d\d:\d\d (INFO|WARN) |Setting default log level")
    assert [line for line in log if spark.search(line)] == []


def test_no_setting_is_on_the_command_line(ran: tuple[Path, dict[str, Any]]) -> None:
    _, known = ran
    assert known["key"] == PASSWORDS["key"]
    assert "hunter2" not in str(known["command"])
    assert "s3a" not in str(known["command"])
    assert known["settings"] == [], "the file is gone once it was read"


def test_sparks_own_files_are_in_a_private_folder(ran: tuple[Path, dict[str, Any]]) -> None:
    _, known = ran
    assert known["local"] == [known["temporary"], "0o700"]
    assert known["blocks"]


def test_no_stored_file_has_a_secret(ran: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = ran
    files = [path for name in ("checkpoints", "savepoints") for path in (folder / name).rglob("*") if path.is_file()]
    assert any(path.name == "firesteel-job.pkl" for path in files)
    assert any(path.name == "manifest.json" for path in files)
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []


def test_what_is_stored_is_its_owners_alone(ran: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = ran
    job = folder / "checkpoints" / "job"
    ours = [folder / "checkpoints", job, *job.iterdir()]
    ours += [path for path in job.rglob("*") if job / "query" not in path.parents]
    ours += [folder / "savepoints", *(folder / "savepoints").rglob("*")]
    modes = {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in ours}
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_the_output_of_a_file_sink_has_the_users_umask(ran: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = ran
    parts = [path for path in (folder / "output").rglob("part-*") if path.is_file()]
    assert parts
    assert {path.stat().st_mode & 0o777 for path in parts} == {0o644}
    # What the function got: a secret that came with it, and one that it looked up.
    expected = hashlib.sha256((PASSWORDS["held"] + PASSWORDS["variable"]).encode()).hexdigest()
    assert {line for path in parts for line in path.read_text().splitlines()} == {expected}
    assert os.stat(folder / "output").st_mode & 0o777 == 0o755
