"""Runs the sessions of a file such as ``tests/table/sessions_by_pyflink.json`` with PyFlink and notes what they print.

    PYTHONPATH=tests/table python tools/record_sessions.py tests/table/sessions_by_pyflink.json [--check] [NAME ...]

in an environment with ``apache-flink==2.3.0``; ``tests/table`` has the functions that sessions name. A session has an
environment of its own: ``name``, ``mode`` (streaming unless it is there), ``zone`` (what TZ is; UTC unless it is
there), ``settings`` and the ``sql`` of its statements are written by hand; what each prints, or why it is refused, is
what this adds. ``SET``, a statement of Flink's SQL client, sets the environment's setting. ``--check`` only compares;
names choose sessions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SETTING = re.compile(r"SET '([^']*)' = '([^']*)'")


def reason(error: Exception) -> str:
    """The last cause that Java names."""
    lines = [line.strip() for line in str(error).splitlines() if not line.strip().startswith("at ")]
    causes = [line for line in lines if "Exception" in line or "Error" in line]
    return (causes or lines)[-1].removeprefix("Caused by: ")[:300]


def record(session: dict[str, Any], folder: Path) -> None:
    """Runs the statements of a session and notes what came of each."""
    from pyflink.java_gateway import get_gateway
    from pyflink.table import EnvironmentSettings, TableEnvironment

    system = get_gateway().jvm.java.lang.System
    batch = session.get("mode") == "batch"
    env = TableEnvironment.create(
        EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    )
    env.get_config().set("parallelism.default", "1")
    for key, value in session.get("settings", {}).items():
        env.get_config().set(key, value)
    for statement in session["statements"]:
        for key in ("printed", "refused"):
            statement.pop(key, None)
        setting = SETTING.fullmatch(statement["sql"])
        if setting is not None:
            # A statement of Flink's SQL client, which its environments do not have.
            env.get_config().set(*setting.groups())
            statement["printed"] = "OK\n"
            continue
        written = get_gateway().jvm.java.io.ByteArrayOutputStream()
        console = system.out
        try:
            result = env.execute_sql(statement["sql"].replace("$FOLDER", str(folder)))
            if statement["sql"].startswith(("INSERT", "EXECUTE")):
                result.wait()
            system.setOut(get_gateway().jvm.java.io.PrintStream(written, True, "UTF-8"))
            result.print()
            statement["printed"] = written.toString("UTF-8").replace(str(folder), "$FOLDER")
        except Exception as error:
            statement["refused"] = reason(error).replace(str(folder), "$FOLDER")
        finally:
            system.setOut(console)


def record_one(data: Path, name: str) -> dict[str, Any]:
    """A session in this process."""
    (session,) = [each for each in json.loads(data.read_text())["sessions"] if each["name"] == name]
    with tempfile.TemporaryDirectory() as folder:
        record(session, Path(folder))
    return session


def main() -> None:
    """Records, or compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        json.dump(record_one(options.data, options.names[0]), sys.stdout)
        return
    content = json.loads(options.data.read_text())
    differing = []
    for place, session in enumerate(content["sessions"]):
        if options.names and session["name"] not in options.names:
            continue
        # A process each: a Java machine reads TZ when it starts.
        finished = subprocess.run(
            [sys.executable, __file__, str(options.data), session["name"], "--one"],
            env=os.environ | {"TZ": session.get("zone", "UTC")},
            stdout=subprocess.PIPE,
            check=True,
        )
        recorded = json.loads(finished.stdout.splitlines()[-1])
        print(session["name"], "same" if recorded == session else "changed", flush=True)
        differing += [session["name"]] if recorded != session else []
        content["sessions"][place] = recorded
        if not options.check:
            options.data.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    if options.check:
        sys.exit(f"{len(differing)} differ: {', '.join(differing)}" if differing else 0)


if __name__ == "__main__":
    main()
