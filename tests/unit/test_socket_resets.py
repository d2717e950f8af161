"""Connections that are reset in the middle of a line, and lines of many megabytes."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sourcekit import read

from firesteel.connectors import socket as socket_module
from firesteel.connectors.socket import SocketEnumerator, SocketReader


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.setattr(socket_module, "RETRY_SECONDS", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(120)
        yield listening


def lines_of(source: SocketEnumerator, count: int) -> list[str]:
    """The first lines, batch by batch as a job reads them."""
    position: Any = source.initial()
    found: list[str] = []
    while len(found) < count:
        end = source.latest(position, 10**6)
        if end == position:
            threading.Event().wait(0.002)
            continue
        found += read(SocketReader(), source.plan(position, end, 1))
        position = end
    return found


def test_a_reset_ends_the_line_that_it_cuts_and_no_other_line_is_touched(server: socket.socket, tmp_path: Path) -> None:
    source = SocketEnumerator("127.0.0.1", server.getsockname()[1])
    source.start(str(tmp_path))
    assert source.latest(source.initial(), 1) == 0, "it connects when it is first asked for records"
    try:
        expected, sent = [], 0
        for number in range(20):
            client, _ = server.accept()
            data = f"first of {number}\nhalf of {number}".encode()
            client.sendall(data)
            expected += data.decode().splitlines()
            sent += len(data)
            # A reset throws away what has not been read yet, so wait until it has.
            while source._log.durable < sent:
                threading.Event().wait(0.002)
            # No time to linger: the other side gets a reset instead of an orderly end.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        assert lines_of(source, len(expected)) == expected
    finally:
        source.stop()


def test_a_line_of_many_megabytes(server: socket.socket, tmp_path: Path) -> None:
    """Received in many thousand pieces: the time it takes grows with its length, not with the square of it."""
    source = SocketEnumerator("127.0.0.1", server.getsockname()[1])
    source.start(str(tmp_path))
    assert source.latest(source.initial(), 1) == 0, "it connects when it is first asked for records"
    long = b"x" * 20_000_000
    try:
        client, _ = server.accept()
        with client:
            client.sendall(b"before\n" + long + b"\nafter\n")
            found = lines_of(source, 3)
    finally:
        source.stop()
    assert [len(line) for line in found] == [6, len(long), 5]
