"""What a signal does to a program, on the engine in memory. On Spark: ``recovery/test_signals.py``."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sparkkit import eventually, script_environment, write_script

PROGRAM = """
    import sys
    from firesteel.common import Configuration, Types, WatermarkStrategy
    from firesteel.common.serialization import Encoder
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors.datagen import DataGeneratorSource
    from firesteel.datastream.connectors.file_system import FileSink
    from firesteel.engine.memory import MemoryEngine

    # A busy machine may hold the last batch up, or its files.
    MemoryEngine.suspends_within = 120.0

    def build():
        settings = {"firesteel.master": "memory", "firesteel.batch.max-records": "100"}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        source = DataGeneratorSource(str, 10**9, 500.0)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.STRING())
        stream.sink_to(FileSink.for_row_format(sys.argv[1], Encoder.simple_string_encoder()).build())
        return env, stream
"""

WAYS = {
    "execute": """
    env, _ = build()
    env.execute("numbers")
""",
    "execute_async": """
    env, _ = build()
    client = env.execute_async("numbers")
    try:
        client.get_job_execution_result().result()
    finally:
        print(client.get_job_status().result().name, flush=True)
""",
    "execute_and_collect": """
    _, stream = build()
    with stream.execute_and_collect("numbers") as records:
        for record in records:
            pass
""",
}


def started(tmp_path: Path, way: str) -> subprocess.Popen[str]:
    script = write_script(tmp_path, PROGRAM + WAYS[way])
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=script_environment(),
    )
    assert eventually(lambda: list((tmp_path / "out").glob("**/.*")) or process.poll() is not None)
    assert process.poll() is None
    return process


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_stops_the_job_and_shows_what_was_done(
    tmp_path: Path, way: str, sent: signal.Signals, code: int
) -> None:
    process = started(tmp_path, way)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=170)
    assert process.returncode == code
    assert "job 'numbers' was stopped. It keeps no checkpoint, so a new start begins anew." in errors
    shown = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert shown
    assert not [path for path in shown if path.name.startswith(".")], "nothing half done stays"
    numbers = sorted(int(line) for path in shown for line in path.read_text().splitlines())
    assert numbers == list(range(len(numbers)))


OWN_HANDLER = """
    import signal
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    env, _ = build()
    env.execute("numbers")
"""


def test_a_handler_of_the_program_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAYS, "own", OWN_HANDLER)
    process = started(tmp_path, "own")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=170)
    assert process.returncode == 7
    assert "was stopped" in errors


SLOW_END = """
    import time
    from firesteel.engine.memory import MemoryJob

    def never(self):
        print("ending", file=sys.stderr, flush=True)
        time.sleep(600)

    MemoryJob._close_tasks = never
    env, _ = build()
    env.execute("numbers")
"""


def test_a_second_signal_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAYS, "slow", SLOW_END)
    process = started(tmp_path, "slow")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == "ending\n"
    # The first one may come twice, from a shell and from a wrapper; so repeat until it counts.
    for _ in range(100):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(0.2)
            break
        except subprocess.TimeoutExpired:
            continue
    assert process.wait(120) == 128 + signal.SIGINT
    process.communicate()


LONG_BATCH = """
    import time
    from firesteel.common import Configuration
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.engine.memory import MemoryEngine

    MemoryEngine.suspends_within = 1.0

    def busy(value):
        open(sys.argv[1] + "/.begun", "w").close()
        time.sleep(600)
        return value

    import os
    os.makedirs(sys.argv[1])
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"firesteel.master": "memory"}))
    env.from_collection([1]).map(busy).print()
    env.execute("numbers")
"""


def test_a_batch_that_takes_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAYS, "long", LONG_BATCH)
    process = started(tmp_path, "long")
    process.send_signal(signal.SIGTERM)
    # Far less than the batch takes.
    _, errors = process.communicate(timeout=170)
    assert process.returncode == 128 + signal.SIGTERM
    assert "job 'numbers' did not stop within 1 s" in errors


FAILS = """
    from firesteel.engine.memory import MemoryJob
    original = MemoryJob.run

    def run(self):
        original(self)
        raise ValueError("the last commit failed")

    MemoryJob.run = run
    env, _ = build()
    env.execute("numbers")
"""


def test_what_fails_while_a_job_is_stopped_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAYS, "fails", FAILS)
    process = started(tmp_path, "fails")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=170)
    assert "job 'numbers' failed while it was stopped: the last commit failed" in errors


def test_a_reader_that_has_gone_ends_the_job(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
        from firesteel.common import Configuration
        from firesteel.datastream import StreamExecutionEnvironment
        from firesteel.common import WatermarkStrategy
        from firesteel.datastream.connectors.datagen import DataGeneratorSource

        settings = {"firesteel.master": "memory", "restart-strategy.type": "exponential-delay"}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        source = DataGeneratorSource(str, 10**9, 1000.0)
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").print()
        env.execute("numbers")
        """,
    )
    command = f"{sys.executable} {script} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=script_environment(), timeout=170, check=False
    )
    assert "Nobody reads the program's output any longer" in done.stderr
    assert "attempt" not in done.stderr, "it is not tried again"


def test_short_jobs_do_not_stay_known() -> None:
    from firesteel.common import Configuration
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.engine import interrupts

    before = set(interrupts._RUNNING)
    for _ in range(50):
        settings = Configuration.from_dict({"firesteel.master": "memory"})
        env = StreamExecutionEnvironment.get_execution_environment(settings)
        with env.from_collection([1]).map(lambda n: n).execute_and_collect() as records:
            list(records)
    assert eventually(lambda: set(interrupts._RUNNING) == before)
