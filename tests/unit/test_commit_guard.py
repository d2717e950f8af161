"""Nothing is committed where the process may not commit any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.common import Encoder
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.engine.commit_guard import set_commit_guard
from firesteel.errors import CheckpointError, FiresteelError
from firesteel.testing import memory_environment


@pytest.fixture
def no_guard() -> Iterator[None]:
    yield
    set_commit_guard(None)


@pytest.mark.usefixtures("no_guard")
def test_a_guard_that_refuses_keeps_results_out(tmp_path: Path) -> None:
    asked = []

    def refuse() -> None:
        # The first time is the recovery, before there is anything.
        asked.append(1)
        if len(asked) > 1:
            raise CheckpointError("the lease is lost")

    def run() -> list[Path]:
        env = memory_environment()
        sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
        env.from_collection(["a", "b"]).sink_to(sink)
        env.execute("guarded")
        return [path for path in (tmp_path / "out").rglob("part-*") if not path.name.startswith(".")]

    set_commit_guard(refuse)
    with pytest.raises(FiresteelError, match="the lease is lost"):
        run()
    assert not [path for path in (tmp_path / "out").rglob("part-*") if not path.name.startswith(".")]
    set_commit_guard(None)
    assert run()


@pytest.mark.usefixtures("no_guard")
def test_a_batch_without_anything_to_commit_is_asked_for_too(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise CheckpointError("the lease is lost")

    def run() -> None:
        env = memory_environment()
        env.from_collection(["shown"]).print()
        env.execute("guarded")

    set_commit_guard(refuse)
    with pytest.raises(FiresteelError, match="the lease is lost"):
        run()
    assert "shown" not in capsys.readouterr().out
    set_commit_guard(None)
    run()
    assert "shown" in capsys.readouterr().out
