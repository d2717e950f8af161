"""What a run looks like on a terminal: said at once that it starts, output on lines of its own, a summary."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sparkkit import QUICK_SETTINGS, SCRIPT_SECONDS, script_environment, write_script

from firesteel.engine.inbox import Progress
from firesteel.engine.progress import ProgressLine

# A job whose last record waits until the line was drawn.
PROGRAM = """
    import logging, sys, time
    from pathlib import Path
    from firesteel.datastream import StreamExecutionEnvironment

    drawn = Path(sys.argv[1])

    def slowly(n):
        if n == 2:
            logging.getLogger("shop").warning("two is odd")
        while n == 3 and not drawn.exists():
            time.sleep(0.05)
        return n

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection([1, 2, 3]).map(slowly).print()
    env.execute("numbers")
    print("bye")
"""


def on_a_terminal(path: Path, awaited: str, **environment: str) -> str:
    """All that a program writes to the terminal that is its stdout and its stderr. It gets the name of a file that is
    there once it has written what is ``awaited``."""
    ours, theirs = pty.openpty()
    there = path.with_suffix(".there")
    process = subprocess.Popen(
        [sys.executable, str(path), str(there)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=script_environment(**environment),
    )
    os.close(theirs)
    written = b""
    try:
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                # How Linux says that nobody has the other end any more.
                break
            if not piece:
                break
            written += piece
            if re.search(awaited.encode(), written):
                there.touch()
    finally:
        os.close(ours)
        process.wait(SCRIPT_SECONDS)
    return written.decode()


def screen(written: str) -> list[str]:
    """What stands on the terminal in the end: the few control codes that are used, played."""
    lines, column = [""], 0
    for part in re.findall(r"\x1b\[2K|\r|\n|[^\x1b\r\n]+", written):
        if part == "\x1b[2K":
            lines[-1] = ""
        elif part == "\r":
            column = 0
        elif part == "\n":
            lines.append("")
        else:
            lines[-1] = lines[-1][:column].ljust(column) + part + lines[-1][column + len(part) :]
            column += len(part)
    return lines


@pytest.mark.parametrize("master", ["memory", "local"])
def test_a_run_on_a_terminal(master: str, tmp_path: Path) -> None:
    settings = f"{QUICK_SETTINGS}\x1ffiresteel.batch.max-records=1"
    # The line of a batch that is done: then the last one is the one that waits.
    written = on_a_terminal(
        write_script(tmp_path, PROGRAM),
        "numbers · batch [12] · ",
        FIRESTEEL_MASTER=master,
        FIRESTEEL_SETTINGS=settings,
    )
    what = "starting" if master == "memory" else "starting Spark"
    assert written.startswith(f"\r\x1b[2Knumbers · {what} … 0 s"), "at once"
    shown = screen(written)
    assert [re.sub(r"^\d> ", "", line) for line in shown if re.fullmatch(r"(\d> )?\d", line)] == ["1", "2", "3"], shown
    # A worker's log has the level and the logger's name in it.
    assert ("two is odd" if master == "memory" else "WARNING shop [Map 1/1]: two is odd") in shown, shown
    assert re.fullmatch(r"job 'numbers' finished after \d+\.\d s: 3 records, [\d,]+ records/s, \d+ batches", shown[-3])
    assert shown[-2:] == ["bye", ""]
    assert len(shown) == 7, shown


def test_nothing_is_drawn_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine("numbers", Progress(), None)
    line.start("starting Spark")
    line.started()
    line.stop()
    line.summary("done")
    assert capsys.readouterr() == ("", "")
