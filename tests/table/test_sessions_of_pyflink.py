"""Statements one after the other in one session: each prints what PyFlink 2.3 printed, or is refused where Flink
refuses it (``tools/record_sessions.py``). Where ours is another result on purpose, ``ours`` has it and ``why`` says
why."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sessionkit import environment_of, printed_by

SESSIONS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "sessions_by_pyflink.json").read_text())[
    "sessions"
]


@pytest.fixture
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A session, on a machine that is in its time zone."""
    recorded: dict[str, Any] = request.param
    with monkeypatch.context() as changed:
        changed.setenv("TZ", recorded.get("zone", "UTC"))
        time.tzset()
        yield recorded
    time.tzset()


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session["name"], indirect=True)
def test_each_statement_prints_what_flink_printed(session: dict[str, Any], tmp_path: Path) -> None:
    env = environment_of(session)
    for statement in session["statements"]:
        if "ours" not in statement and "refused" in statement:
            with pytest.raises(Exception) as caught:  # noqa: PT011
                printed_by(env, statement["sql"], tmp_path)
            assert type(caught.value).__module__.startswith("firesteel."), statement["sql"]
        else:
            wanted = statement.get("ours", statement.get("printed"))
            printed = printed_by(env, statement["sql"], tmp_path)
            if session.get("mode") == "batch" and "ORDER BY" not in statement["sql"]:
                printed, wanted = (sorted(text.splitlines()) for text in (printed, wanted))
            assert printed == wanted, statement["sql"]


def test_what_is_other_than_flinks_has_a_reason() -> None:
    for session in SESSIONS:
        for statement in session["statements"]:
            assert ("ours" in statement) == ("why" in statement), statement["sql"]
            assert "ours" not in statement or statement["ours"] != statement.get("printed"), statement["sql"]
