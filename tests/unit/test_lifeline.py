"""The line by which processes learn that a job is over: only those that know its secret hold it."""

from __future__ import annotations

import socket
import threading

import pytest
from sparkkit import eventually

from firesteel.engine.spark import lifeline
from firesteel.engine.spark.lifeline import Lifeline, keep_connection


def test_who_says_nothing_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifeline, "GREETING_SECONDS", 600)
    line = Lifeline("127.0.0.1")
    silent = [socket.create_connection((line.address.host, line.address.port)) for _ in range(20)]
    over = threading.Event()

    def end() -> list[str]:
        over.set()
        return ["closed"]

    keep_connection(line.address, end)
    assert eventually(lambda: line.holders == 1)
    assert line.end() == ["closed"]
    assert over.is_set()
    for connection in silent:
        connection.close()


def test_a_wrong_secret_holds_nothing() -> None:
    line = Lifeline("127.0.0.1")
    with socket.create_connection((line.address.host, line.address.port)) as stranger:
        stranger.sendall(b"0" * len(line.address.secret))
        stranger.settimeout(120)
        assert stranger.recv(1) == b"", "closed without an answer"
    assert line.holders == 0
    assert line.address.secret not in repr(line.address)
    line.end()
