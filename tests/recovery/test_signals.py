"""Signals, a second start, and what stays behind, with a real Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

from sparkkit import (
    descendants,
    end_process,
    eventually,
    processes_with,
    script_environment,
    write_script,
)

RECORDS = 60_000

PROGRAM = """
    import sys
    from firesteel.common import Configuration, Types, WatermarkStrategy
    from firesteel.common.serialization import Encoder
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource
    from firesteel.datastream.connectors.file_system import FileSink

    folder, rate = sys.argv[1], float(sys.argv[2])
    settings = Configuration.from_dict({"state.checkpoints.dir": folder + "/checkpoints"})
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(2)
    env.enable_checkpointing(100)
    source = DataGeneratorSource(lambda n: (n % 7, n), 60_000, rate)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    texts = numbers.key_by(lambda record: record[0]).map(lambda record: str(record[1]), Types.STRING()).uid("texts")
    texts.sink_to(FileSink.for_row_format(folder + "/out", Encoder.simple_string_encoder()).build()).uid("files")
    env.execute("numbers")
"""


class Program:
    """The program in a process of its own, with a temporary folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = write_script(folder, PROGRAM)
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.mark = uuid.uuid4().hex

    def start(self, rate: int = 100) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.script), str(self.folder), str(rate)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=script_environment(TMPDIR=str(self.temporary), FIRESTEEL_TEST_MARK=self.mark),
        )

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoints" / "numbers"

    def batches(self) -> int:
        """How many batches are done."""
        done = (self.checkpoint / "query" / "commits").glob("[0-9]*")
        return max((int(entry.name) + 1 for entry in done), default=0)

    def goes_on(self, process: subprocess.Popen[str]) -> None:
        """Waits for two more batches."""
        before = self.batches()
        assert eventually(lambda: self.batches() >= before + 2 or process.poll() is not None)
        assert process.poll() is None, process.communicate()

    def numbers(self) -> list[int]:
        """What is seen in the sink's folder."""
        files = [path for path in (self.folder / "out").rglob("*") if path.is_file() and not path.name.startswith(".")]
        return sorted(int(line) for path in files for line in path.read_text().splitlines())

    def leaves_nothing(self, besides: tuple[str, ...] = ()) -> bool:
        left = [
            path
            for path in self.temporary.rglob("*")
            # What is known of jobs that have ended is meant to stay.
            if not path.is_dir() and path.suffix not in besides and "finished" not in path.parts
        ]
        return not processes_with("FIRESTEEL_TEST_MARK", self.mark) and not left


def test_an_interrupt_a_second_start_and_a_kill_lose_and_double_nothing(tmp_path: Path) -> None:
    """SIGTERM does the same as an interrupt: that is shown below, and in memory."""
    program = Program(tmp_path)
    first = program.start()
    try:
        program.goes_on(first)
        # Who comes second is refused before Spark is started, and changes nothing.
        _, errors = program.start().communicate(timeout=300)
        assert f", process {first.pid} on " in errors
        program.goes_on(first)
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=300)
        assert first.returncode == -signal.SIGINT
        assert f"job 'numbers' was stopped. Its checkpoint stays in {program.checkpoint}" in errors
        # All that was done is seen, and only that.
        seen = program.numbers()
        assert seen == list(range(len(seen)))
        assert 0 < len(seen) < RECORDS
        assert eventually(program.leaves_nothing), (
            processes_with("FIRESTEEL_TEST_MARK", program.mark),
            sorted(program.temporary.rglob("*")),
        )
    finally:
        end_process(first)
    killed = program.start()
    try:
        program.goes_on(killed)
        family = processes_with("FIRESTEEL_TEST_MARK", program.mark)
        assert len(family) > 4, "the driver, the JVM, the workers and their parent"
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    finally:
        end_process(killed)
    # The JVM notices and goes, and with it its Python workers. Files by which it could be reached stay: the next start
    # removes them.
    reached = (".json", ".sock")
    assert eventually(lambda: program.leaves_nothing(besides=reached)), sorted(program.temporary.rglob("*"))
    last = program.start(rate=1_000_000)
    _, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors
    assert program.numbers() == list(range(RECORDS))
    assert not program.checkpoint.exists(), "it has finished"
    assert eventually(program.leaves_nothing)


def test_an_interrupt_while_spark_starts_leaves_no_jvm(tmp_path: Path) -> None:
    program = Program(tmp_path)
    process = program.start()
    try:
        assert eventually(lambda: any("SparkSubmit" in command for command in descendants(process.pid).values()))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGINT, errors
        assert eventually(program.leaves_nothing)
    finally:
        end_process(process)
        for left in processes_with("FIRESTEEL_TEST_MARK", program.mark):
            os.kill(left, signal.SIGKILL)


LONG_BATCH = """
    import sys, time
    from firesteel.common import Configuration
    from firesteel.datastream import StreamExecutionEnvironment

    begun = sys.argv[1] + "/begun"

    def busy(value):
        open(begun, "w").close()
        time.sleep(600)
        return value

    settings = Configuration.from_dict({"state.checkpoints.dir": sys.argv[1] + "/checkpoints"})
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.enable_checkpointing(100)
    env.from_collection([1]).map(busy).print()
    env.execute("long")
"""


def test_a_batch_that_takes_long_is_given_up(tmp_path: Path) -> None:
    script, mark = write_script(tmp_path, LONG_BATCH), uuid.uuid4().hex
    command = [sys.executable, str(script), str(tmp_path)]
    environment = script_environment(FIRESTEEL_TEST_MARK=mark)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert eventually((tmp_path / "begun").exists)
        process.send_signal(signal.SIGTERM)
        # Far less than the batch takes.
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 128 + signal.SIGTERM
        assert "job 'long' was stopped. Its checkpoint stays in" in errors
        assert (tmp_path / "checkpoints" / "long").exists()
        assert eventually(lambda: not processes_with("FIRESTEEL_TEST_MARK", mark))
    finally:
        end_process(process)
