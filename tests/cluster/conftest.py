"""What tests of the job manager share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from folderkit import runtime_folder

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def short() -> Iterator[Path]:
    """A folder with a short path: that of a socket must be."""
    with runtime_folder() as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def places(monkeypatch: pytest.MonkeyPatch, short: Path) -> None:
    """Jobs and job managers of these tests only."""
    monkeypatch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
    monkeypatch.setenv("FIRESTEEL_CLUSTER_DIR", str(short / "none"))
    for name in ("FIRESTEEL_TOKEN", "FIRESTEEL_TOKEN_FILE", "FIRESTEEL_SETTINGS"):
        monkeypatch.delenv(name, raising=False)
