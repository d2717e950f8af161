"""What the tests on Spark are made of: environments, sinks that write files, programs run as scripts, processes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from firesteel.common import Configuration
from firesteel.datastream import RuntimeExecutionMode, SinkFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Committer, CommitterContext, Sink, SinkWriter, WriterContext

REPOSITORY = Path(__file__).resolve().parents[1]
BATCH = RuntimeExecutionMode.BATCH
SCRIPT_SECONDS = 400
"""How long a program in a process of its own may take: many times what it needs, also on a slow machine."""


QUICK = {"firesteel.spark.jit": "quick"}
"""Few tests have work for which the JVM's thorough compiler pays: in the first minute it takes half of all CPU."""
QUICK_SETTINGS = "firesteel.spark.jit=quick"
"""The same for the environment of a script."""


def spark_env(
    parallelism: int = 1,
    config: Mapping[str, Any] | None = None,
    mode: RuntimeExecutionMode | None = None,
) -> StreamExecutionEnvironment:
    """An environment on Spark, in the session that all tests of a process share."""
    settings = {"firesteel.master": "local", **QUICK, **{key: str(value) for key, value in (config or {}).items()}}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(parallelism)
    if mode is not None:
        env.set_runtime_mode(mode)
    return env


def eventually(condition: Callable[[], Any], seconds: float = 180) -> bool:
    """Whether a condition comes true. The time only ends a test that hangs; normally it takes a fraction."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


# Sinks


class AppendSink(SinkFunction):
    """Appends every record as a line of JSON to a file of this process: no two processes share one."""

    def __init__(self, folder: Path | str, name: str) -> None:
        self.folder, self.name = str(folder), name

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        note(self.folder, self.name, value)


def note(folder: str | Path, name: str, value: Any) -> None:
    """Writes down that something happened, from whatever process it happens in."""
    with open(f"{folder}/{name}.{os.getpid()}.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")


def notes(folder: str | Path, name: str) -> list[Any]:
    """All that was noted under a name."""
    files = sorted(Path(folder).glob(f"{name}.*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


class _Writer(SinkWriter):
    """A batch's records of a subtask are one committable, named by what it holds: a replay gives the same name."""

    def __init__(self, subtask: int) -> None:
        self.subtask = subtask
        self.pending: list[Any] = []

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self.pending.append(value)

    def prepare_commit(self) -> list[Any]:
        if not self.pending:
            return []
        text = json.dumps(self.pending)
        self.pending = []
        name = hashlib.blake2b(f"{self.subtask}|{text}".encode(), digest_size=8).hexdigest()
        return [(self.subtask, name, text)]


class _Committer(Committer):
    def __init__(self, folder: str, fail_in_call: int | None) -> None:
        self.folder = folder
        self.fail_in_call = fail_in_call

    def commit(self, committables: list[Any]) -> None:
        with open(f"{self.folder}/calls.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(committables) + "\n")
        for _, name, text in committables:
            # Idempotent: the same committable is the same file, and it appears as a whole.
            draft = f"{self.folder}/{name}.{os.getpid()}.tmp"
            Path(draft).write_text(text, encoding="utf-8")
            os.replace(draft, f"{self.folder}/{name}.done")
        # Counted in the folder: a restarted job has a new committer.
        if len(commit_calls(self.folder)) == self.fail_in_call:
            raise ConnectionError("the answer to the commit got lost")

    def abort(self, committables: list[Any]) -> None:
        note(self.folder, "aborted", committables)


class CommitSink(Sink):
    """Exactly once into a folder. The committer notes what it got and can fail after it did its work."""

    def __init__(self, folder: Path | str, fail_in_call: int | None = None) -> None:
        self.folder, self.fail_in_call = str(folder), fail_in_call

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(context.subtask())

    def create_committer(self, context: CommitterContext) -> Committer:
        return _Committer(self.folder, self.fail_in_call)


def committed(folder: Path | str) -> list[Any]:
    """All records that were committed."""
    return [record for file in Path(folder).glob("*.done") for record in json.loads(file.read_text())]


def commit_calls(folder: Path | str) -> list[list[Any]]:
    """What the committer got, call by call."""
    return [json.loads(line) for line in (Path(folder) / "calls.jsonl").read_text().splitlines()]


# Programs in a process of their own


def script_environment(**changes: str | None) -> dict[str, str]:
    """The environment for a script: this one's, without what the session of the tests put there."""
    ours = ("FIRESTEEL_", "SPARK_", "PYSPARK_", "COV_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours) or k == "FIRESTEEL_CACHE_DIR"}
    kept["FIRESTEEL_WARMUP"] = "off"
    kept["FIRESTEEL_SETTINGS"] = QUICK_SETTINGS
    for name, value in changes.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = value
    return kept


def write_script(folder: Path, text: str, name: str = "program.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def run_script(path: Path, *arguments: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end. Its output is all it wrote, also from processes it started."""
    return subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=SCRIPT_SECONDS,
        env=script_environment(**environment),
        cwd=path.parent,
        check=False,
    )


WORD_COUNT = """
    from firesteel.common import Types
    from firesteel.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    (env.from_collection(["hello world", "hello flink", "hello java"])
        .flat_map(lambda line: line.split())
        .map(lambda w: (w, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda t: t[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .print())
    env.execute("word count")
"""

WORD_COUNT_LINES = ["(flink,1)", "(hello,1)", "(hello,2)", "(hello,3)", "(java,1)", "(world,1)"]


def without_subtask(text: str) -> list[str]:
    return sorted(re.sub(r"^\d+> ", "", line) for line in text.splitlines())


# Processes


def process_table() -> dict[int, tuple[int, str]]:
    """Parent and command line of every process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found[int(entry.name)] = (parent, command)
    return found


def descendants(root: int) -> dict[int, str]:
    """The processes that a process started, and those that they started, with their command lines."""
    table = process_table()

    def below(pid: int) -> Iterator[int]:
        for child, (parent, _) in table.items():
            if parent == pid:
                yield child
                yield from below(child)

    return {pid: table[pid][1] for pid in below(root)}


def processes_with(variable: str, value: str) -> set[int]:
    """All processes that have this in their environment: those that a script started, whoever their parent is now."""
    entry = f"{variable}={value}".encode()
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if entry in (folder / "environ").read_bytes().split(b"\0"):
                    found.add(int(folder.name))
            except OSError:
                continue
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end_process(process: subprocess.Popen[Any]) -> None:
    """Ends a process that a test started, politely first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(60)
