"""One job under supervision, without a server: its driver is started again when it dies, and its output is shown.

The program runs where it lies, with the modules beside it. What the supervisor needs to know is in a temporary folder,
which goes when the job has ended.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from firesteel.cluster.folders import ClusterFolder, JobFolder
from firesteel.cluster.program_store import ProgramStore, StoredProgram
from firesteel.cluster.registry import ENDED
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sqlite_registry import SqliteRegistry
from firesteel.cluster.supervisor import Supervisor
from firesteel.errors import ProgramError

__all__ = ["run_supervised"]


class _InPlace(ProgramStore):
    """The one program, where it is."""

    def __init__(self, program: Path) -> None:
        self.program = StoredProgram(program.name, program.name, program, 0)

    def find(self, program_id: str) -> StoredProgram | None:
        return self.program


class _Output:
    """Copies what drivers print, one after the other, to this process's output."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._driver, self._read = 0, 0

    def copy(self) -> None:
        """What has come since the last time."""
        while True:
            path = self._folder.log(self._driver)
            if path.exists():
                size = path.stat().st_size
                if size < self._read:
                    # It was full, and another file has its name now.
                    self._read = 0
                with open(path, "rb") as file:
                    file.seek(self._read)
                    text = file.read()
                self._read += len(text)
                sys.stdout.write(text.decode(errors="replace"))
                sys.stdout.flush()
            if not self._folder.log(self._driver + 1).exists():
                return
            self._driver, self._read = self._driver + 1, 0


def run_supervised(program: str, arguments: Sequence[str], settings: Mapping[str, str]) -> int:
    """Runs a program until its job has ended for good. Ctrl-C and SIGTERM suspend it, as ever."""
    path = Path(program).absolute()
    if not path.exists():
        raise ProgramError(f"There is no file {program!r}.")
    place = Path(tempfile.mkdtemp(prefix="firesteel-run-"))
    folder = ClusterFolder.make(place / "run")
    registry = SqliteRegistry(folder.registry)
    registry.claim()
    store = _InPlace(path)
    supervisor = Supervisor(
        ClusterSettings(folder=folder.path, slots=1, poll_ms=500, warm_drivers=0), folder, registry, store
    )
    before = signal.signal(signal.SIGTERM, _exit_on_signal)
    state, suspended = "", True
    try:
        supervisor.start()
        row = supervisor.submit(store.program, tuple(arguments), settings)
        if str(folder.checkpoints) in row.settings.get("execution.checkpointing.dir", ""):
            print("The checkpoint is kept until this command ends: state.checkpoints.dir is not set.", file=sys.stderr)
        output = _Output(folder.job(row.id))
        while state not in ENDED:
            state = supervisor.row(row.id).state
            output.copy()
            time.sleep(0.1)
        # The writer of the log may be a moment behind the driver.
        time.sleep(0.2)
        output.copy()
        suspended = False
        if state != "FINISHED":
            print(supervisor.row(row.id).failure or f"The job was {state.lower()}.", file=sys.stderr)
        return 0 if state == "FINISHED" else 1
    finally:
        supervisor.stop(leave_jobs=not suspended)
        if suspended and state:
            output.copy()
        registry.close()
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(place, ignore_errors=True)


def _exit_on_signal(number: int, frame: Any) -> NoReturn:
    sys.exit(128 + number)
