"""Runs one case on one engine in a process of its own and reads the JSON line that it prints."""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.cases import FIRESTEEL, Case, Engine
from benchmarks.environments import ROOT, python_of
from benchmarks.kafka import Broker
from benchmarks.live import Feed, watch
from benchmarks.programs.processes import descendants

PROGRAMS = Path(__file__).resolve().parent / "programs"
TIMEOUT = 3600
STARTS = 3

Result = dict[str, Any]
Show = Callable[[str], None]


def run(
    case: Case,
    engine: Engine,
    records: int,
    repeats: int,
    timeout: float = TIMEOUT,
    show: Show = lambda line: None,
    broker: Broker | None = None,
) -> Result:
    """The measurement, or ``{"error": …}`` if the program failed or took too long: the others shall go on."""
    try:
        if case.kafka_bytes:
            assert broker is not None
            engine = replace(engine, variables={**engine.variables, **broker.prepared(case, engine, records)})
        if case.kind == "latency":
            assert broker is not None
            with started([*command_of(case, engine), "--live"], variables_of(engine), timeout) as process:
                try:
                    return broker.latency(process)
                finally:
                    end(process)
                    process.returncode = 0
        if case.kind == "live":
            with contextlib.closing(Feed(case.live_rate)) as feed:
                variables = {**variables_of(engine), **feed.variables}
                with started(command_of(case, engine), variables, timeout) as process:
                    try:
                        return watch(process, feed)
                    finally:
                        if process.poll() is None:
                            end(process)
                            process.returncode = 0
        if case.kind == "startup":
            return time_starts(command_of(case, engine), variables_of(engine), timeout)
        options = ["--records", str(records)] if case.records else []
        if case.kind == "rate":
            options += ["--repeats", str(repeats)]
            if engine.name in case.most_seconds:
                options += ["--seconds", str(case.most_seconds[engine.name])]
        return measure(command_of(case, engine) + options, variables_of(engine), timeout, show)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[-2000:]}


def command_of(case: Case, engine: Engine) -> list[str]:
    python = str(python_of(engine.environment))
    backend = ["--backend", engine.backend] if engine.backend else []
    if case.kind == "report":
        return [python, str(PROGRAMS / f"{case.program}_{FIRESTEEL}.py"), *case.arguments, *backend]
    program = PROGRAMS / f"{case.program}_{engine.suffix}.py"
    return [python, str(program), *engine.arguments, *case.arguments, *backend]


def variables_of(engine: Engine) -> dict[str, str]:
    """Environment variables; the engine's Python comes first on PATH, where PyFlink's workers look for it."""
    # FIRESTEEL_MASTER and the like would measure something else under Firesteel's name.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FIRESTEEL_")}
    variables = inherited | engine.variables
    variables["PATH"] = f"{python_of(engine.environment).parent}{os.pathsep}{variables['PATH']}"
    if engine.environment is None:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), variables.get("PYTHONPATH")]))
    return variables


@contextlib.contextmanager
def started(command: list[str], variables: dict[str, str], timeout: float) -> Iterator[subprocess.Popen[str]]:
    """A running program. When the time is up, or when this block is left, it ends with all processes that it started.

    Raises TimeoutError in the first case, and RuntimeError with the last output of a program that failed.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            command, env=variables, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace"
        )
        expired = threading.Event()

        def give_up() -> None:
            expired.set()
            end(process)

        timer = threading.Timer(timeout, give_up)
        timer.start()
        try:
            yield process
            process.wait()
        finally:
            timer.cancel()
            end(process)
            assert process.stdout is not None
            process.stdout.close()
        if expired.is_set():
            raise TimeoutError(f"given up after {timeout:,.0f} s")
        if process.returncode:
            errors.seek(0)
            raise RuntimeError(f"exit code {process.returncode}: {errors.read()[-1500:]}")


def end(process: subprocess.Popen[str]) -> None:
    """End a program and all below it. A JVM would outlive the Python that started it, and keep its pipes open."""
    if process.poll() is None:
        for pid in [*descendants(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def measure(command: list[str], variables: dict[str, str], timeout: float, show: Show) -> Result:
    """The result that a program prints; its lines that begin with ``#`` are shown as they come."""
    lines = []
    with started(command, variables, timeout) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("# "):
                show(line[2:].rstrip())
            else:
                lines.append(line)
    return last_json_line("".join(lines))


def last_json_line(output: str) -> Result:
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            result: Result = json.loads(line)
            return result
    raise RuntimeError(f"no JSON line in the output: {output[-500:]!r}")


def time_starts(command: list[str], variables: dict[str, str], timeout: float) -> Result:
    """Seconds from process start to first output and to the end; the first start only fills the caches."""
    first = time_start(command, variables, timeout)
    starts = [time_start(command, variables, timeout) for _ in range(STARTS)]
    return {
        "seconds": statistics.median(output for output, _ in starts),
        "seconds_to_the_end": statistics.median(end for _, end in starts),
        "first_start_seconds": first[0],
        "starts": starts,
    }


def time_start(command: list[str], variables: dict[str, str], timeout: float) -> tuple[float, float]:
    begun = time.perf_counter()
    with started(command, variables, timeout) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        to_first_output = time.perf_counter() - begun
        process.stdout.read()
    to_the_end = time.perf_counter() - begun
    if not line:
        raise RuntimeError("the program printed nothing")
    return to_first_output, to_the_end
