"""How an example is run: in this process, as ``__main__``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Protocol

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class RunExample(Protocol):
    """The signature of the fixture ``run``."""

    def __call__(self, name: str, *arguments: str, master: str = "memory") -> list[str]: ...


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunExample:
    """Runs an example with arguments; returns the lines it printed."""

    def run_example(name: str, *arguments: str, master: str = "memory") -> list[str]:
        monkeypatch.setenv("FIRESTEEL_MASTER", master)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run_example
