"""Runs one case on one engine in a process of its own and reads the JSON line that it prints."""

import json
import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, Engine
from benchmarks.environments import ROOT, python_of

PROGRAMS = Path(__file__).resolve().parent / "programs"
TIMEOUT = 3600
STARTS = 3

Result = dict[str, Any]


def run(case: Case, engine: Engine, records: int, repeats: int) -> Result:
    """The measurement, or ``{"error": …}`` if the program failed: the others shall go on."""
    try:
        if case.kind == "startup":
            return time_starts(command_of(case, engine), variables_of(engine))
        options = ["--records", str(records)] if case.records else []
        if case.kind == "rate":
            options += ["--repeats", str(repeats)]
        return measure(command_of(case, engine) + options, variables_of(engine))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)[-2000:]}


def command_of(case: Case, engine: Engine) -> list[str]:
    python = str(python_of(engine.environment))
    if case.kind == "report":
        return [python, str(PROGRAMS / f"{case.program}_{engine.name}.py"), *case.arguments]
    return [python, str(PROGRAMS / f"{case.program}_{engine.suffix}.py"), *engine.arguments, *case.arguments]


def variables_of(engine: Engine) -> dict[str, str]:
    """Environment variables; the engine's Python comes first on PATH, where PyFlink's workers look for it."""
    # FIRESTEEL_MASTER and the like would measure something else under Firesteel's name.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FIRESTEEL_")}
    variables = inherited | engine.variables
    variables["PATH"] = f"{python_of(engine.environment).parent}{os.pathsep}{variables['PATH']}"
    if engine.environment is None:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), variables.get("PYTHONPATH")]))
    return variables


def measure(command: list[str], variables: dict[str, str]) -> Result:
    finished = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if finished.returncode:
        raise RuntimeError(f"exit code {finished.returncode}: {finished.stderr[-1500:]}")
    return last_json_line(finished.stdout)


def last_json_line(output: str) -> Result:
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            result: Result = json.loads(line)
            return result
    raise RuntimeError(f"no JSON line in the output: {output[-500:]!r}")


def time_starts(command: list[str], variables: dict[str, str]) -> Result:
    """Seconds from process start to first output and to the end; the first start only fills the caches."""
    first = time_start(command, variables)
    starts = [time_start(command, variables) for _ in range(STARTS)]
    return {
        "seconds": statistics.median(output for output, _ in starts),
        "seconds_to_the_end": statistics.median(end for _, end in starts),
        "first_start_seconds": first[0],
        "starts": starts,
    }


def time_start(command: list[str], variables: dict[str, str]) -> tuple[float, float]:
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        to_first_output = time.perf_counter() - started
        process.stdout.read()
    to_the_end = time.perf_counter() - started
    if process.returncode or not line:
        raise RuntimeError(f"exit code {process.returncode}, first output {line!r}")
    return to_first_output, to_the_end
