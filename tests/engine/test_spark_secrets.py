"""What a job on Spark shows to other users of the machine: nothing that it keeps, and no secrets."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from sparkkit import run_script, write_script

PROGRAM = """
    import json, os, sys, time
    from pathlib import Path
    from pyspark import SparkContext
    from firesteel.common import Configuration, Encoder, Secret, Types, WatermarkStrategy
    from firesteel.datastream import KeyedProcessFunction, SinkFunction, StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource
    from firesteel.datastream.connectors.file_system import FileSink

    os.umask(0o022)
    folder = sys.argv[1]

    class Service(SinkFunction):
        def __init__(self, password):
            self.password = password

        def invoke(self, value, context):
            assert self.password == "plain-" + "hunter2"

    class Calls(KeyedProcessFunction):
        def __init__(self, *secrets):
            self.secrets = secrets

        def process_element(self, value, ctx):
            yield value, [secret.reveal() for secret in self.secrets]

    # Two halves each, so that no name in the code is what is looked for.
    os.environ["SERVICE_PASSWORD"] = "variable-" + "hunter2"
    held, named = Secret("held-" + "hunter2"), Secret.from_environment("SERVICE_PASSWORD")
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({
        "spark.hadoop.fs.s3a.secret.key": "key-" + "hunter2",
        "firesteel.checkpoint.dir": f"{folder}/checkpoints/job",
    }))
    env.set_parallelism(2)
    source = DataGeneratorSource(lambda n: n, 10**9, 200)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    called = numbers.key_by(lambda n: n % 3).process(Calls(held, named))
    called.add_sink(Service("plain-" + "hunter2"))
    called.map(lambda pair: "ok" if pair[1] == ["held-" + "hunter2", "variable-" + "hunter2"] else "wrong").sink_to(
        FileSink.for_row_format(f"{folder}/output", Encoder.simple_string_encoder()).build()
    )
    job = env.execute_async("secrets")
    job.stop_with_savepoint(False, f"{folder}/savepoints").result()
    context = SparkContext._active_spark_context
    process, local = context._gateway.proc.pid, Path(context.getConf().get("spark.local.dir"))
    print(json.dumps({
        "command": Path(f"/proc/{process}/cmdline").read_bytes().decode(),
        "known": context._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
        "local": [str(local), oct(local.stat().st_mode & 0o777)],
        "temporary": context._jvm.java.lang.System.getProperty("java.io.tmpdir"),
        "blocks": [str(path) for path in local.glob("blockmgr-*")],
        "settings": [str(path) for path in local.glob("settings-*")],
    }))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    folder = tmp_path_factory.mktemp("secrets")
    done = run_script(write_script(folder, PROGRAM), str(folder))
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stderr
    return folder, json.loads(done.stdout)


def test_no_setting_is_on_the_command_line(told: tuple[Path, dict[str, object]]) -> None:
    _, known = told
    assert known["known"] == "key-hunter2"
    assert "hunter2" not in str(known["command"])
    assert "s3a" not in str(known["command"])
    assert known["settings"] == [], "the file is gone once it was read"


def test_sparks_own_files_are_in_a_private_folder(told: tuple[Path, dict[str, object]]) -> None:
    _, known = told
    assert known["local"] == [known["temporary"], "0o700"]
    assert known["blocks"]


def test_no_stored_file_has_a_secret(told: tuple[Path, dict[str, object]]) -> None:
    folder, _ = told
    files = [path for name in ("checkpoints", "savepoints") for path in (folder / name).rglob("*") if path.is_file()]
    assert any(path.name == "firesteel-job.pkl" for path in files)
    assert any(path.name == "manifest.json" for path in files)
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []


def test_what_is_stored_is_its_owners_alone(told: tuple[Path, dict[str, object]]) -> None:
    folder, _ = told
    job = folder / "checkpoints" / "job"
    ours = [folder / "checkpoints", job, *job.iterdir()]
    ours += [path for path in job.rglob("*") if job / "query" not in path.parents]
    ours += [folder / "savepoints", *(folder / "savepoints").rglob("*")]
    modes = {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in ours}
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_the_output_of_a_file_sink_has_the_users_umask(told: tuple[Path, dict[str, object]]) -> None:
    folder, _ = told
    parts = [path for path in (folder / "output").rglob("part-*") if path.is_file()]
    assert parts
    assert {path.stat().st_mode & 0o777 for path in parts} == {0o644}
    assert {line for path in parts for line in path.read_text().splitlines()} == {"ok"}
    assert os.stat(folder / "output").st_mode & 0o777 == 0o755
