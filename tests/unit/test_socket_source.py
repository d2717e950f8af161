"""The socket source and its log: every record once, whatever becomes of connections, of the disk, of the job."""

from __future__ import annotations

import errno
import os
import pickle
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_server import free_ports
from sourcekit import read

from firesteel.connectors import record_log
from firesteel.connectors import socket as socket_module
from firesteel.connectors.record_log import RecordLog
from firesteel.connectors.socket import SocketEnumerator, SocketReader
from firesteel.errors import CheckpointError, ProgramError


class Server:
    """Sends what it is told to whoever is connected."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(120)
        self.port: int = self._socket.getsockname()[1]
        self._client: socket.socket | None = None

    def accept(self) -> None:
        self._client, _ = self._socket.accept()

    def send(self, data: bytes) -> None:
        assert self._client is not None
        self._client.sendall(data)

    def hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def close(self) -> None:
        self.hang_up()
        self._socket.close()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "nothing happened in time"
        time.sleep(0.002)


class TestRecordLog:
    @settings(deadline=None)
    @given(
        st.lists(st.lists(st.text("ab", max_size=3), max_size=4), max_size=6),
        st.sampled_from(["a", "aa", "aba", "ab", "b"]),
        st.integers(1, 8),
    )
    def test_any_pieces_any_breaks_any_batches(self, lines: list[list[str]], delimiter: str, batch: int) -> None:
        """Several connections, each of them some pieces."""
        expected: list[bytes] = []
        with tempfile.TemporaryDirectory() as folder:
            log = RecordLog(folder, delimiter.encode())
            for pieces in lines:
                for piece in pieces:
                    log.append(piece.encode())
                log.cut()
                records = "".join(pieces).split(delimiter)
                expected += [r.encode() for r in (records if records[-1] else records[:-1])]
            assert log.records(0, log.complete) == expected
            ends, found = [0], []
            while ends[-1] < log.complete:
                reach = min(log.complete, ends[-1] + batch)
                end = log.last_end(ends[-1], reach)
                if end is None:
                    end = log.first_end(ends[-1], reach)
                    assert len(log.records(ends[-1], end)) == 1
                found += log.records(ends[-1], end)
                ends.append(end)
            assert found == expected
            log.close()
            again = RecordLog(folder, delimiter.encode())
            assert (again.durable, again.complete) == (log.durable, log.complete)
            assert again.records(0, again.complete) == expected
            again.close()


class Disk:
    """A disk with so many bytes left. What does not fit is written in part, as the system does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 1 << 40
        self.refused = 0
        self._write, self._truncate = os.write, os.ftruncate
        monkeypatch.setattr(record_log.os, "write", self.write)
        monkeypatch.setattr(record_log.os, "ftruncate", self.truncate)

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.left:
            self.refused += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._write(descriptor, data[: self.left])
        self.left -= written
        return written

    def truncate(self, descriptor: int, size: int) -> None:
        self.left += os.fstat(descriptor).st_size - size
        self._truncate(descriptor, size)


def test_half_a_cut_in_the_file_of_cuts_is_none(tmp_path: Path) -> None:
    """The file that says where lines broke: its writer was killed."""
    log = RecordLog(str(tmp_path), b"\n")
    log.append(b"one\nbro")
    log.cut()
    log.close()
    with open(tmp_path / "socket.cuts", "ab") as file:
        file.write(b"12")
    for _ in range(2):
        again = RecordLog(str(tmp_path), b"\n")
        assert again.records(0, again.complete)[:2] == [b"one", b"bro"]
        again.append(b"two")
        again.cut()
        again.close()
    last = RecordLog(str(tmp_path), b"\n")
    assert last.records(0, last.complete) == [b"one", b"bro", b"two", b"two"]


StartSocket = Callable[..., SocketEnumerator]


class TestSocket:
    @pytest.fixture
    def server(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
        monkeypatch.setattr(socket_module, "RETRY_SECONDS", 0.02)
        server = Server()
        yield server
        server.close()

    @pytest.fixture
    def start(self, server: Server, tmp_path: Path) -> Iterator[StartSocket]:
        sources: list[SocketEnumerator] = []

        def start(**options: Any) -> SocketEnumerator:
            source = SocketEnumerator("127.0.0.1", server.port, **options)
            source.start(str(tmp_path / "log"))
            # It connects when it is first asked for records.
            source.latest(0, 1)
            sources.append(source)
            return source

        yield start
        for source in sources:
            source.stop()

    @pytest.fixture
    def disk(self, monkeypatch: pytest.MonkeyPatch) -> Disk:
        return Disk(monkeypatch)

    @pytest.fixture
    def connected(self, server: Server, start: StartSocket) -> SocketEnumerator:
        """A source that the server has let in."""
        source = start()
        server.accept()
        return source

    @staticmethod
    def lines(source: SocketEnumerator, count: int, position: int = 0, parallelism: int = 1) -> tuple[list[str], int]:
        """Waits for so many lines; gives back them and the position behind them."""
        wait_for(lambda: source.count(position, source.latest(position, 10**6)) >= count)
        end = source.latest(position, 10**6)
        return read(SocketReader(source._delimiter.decode()), source.plan(position, end, parallelism)), end

    def test_lines(self, server: Server, start: StartSocket) -> None:
        source = start()
        server.accept()
        server.send(b"one\ntwo\r\n\nthr")
        lines, position = self.lines(source, 3)
        assert lines == ["one", "two", ""]
        server.send("ee é\n".encode())
        assert self.lines(source, 1, position)[0] == ["three é"]
        assert not source.ended(position)

    @pytest.mark.parametrize("parallelism", [1, 2, 3, 5])
    def test_shares_keep_the_order(self, server: Server, start: StartSocket, parallelism: int) -> None:
        source = start()
        server.accept()
        server.send(b"a\nb\nc\nd\n")
        assert self.lines(source, 4, parallelism=parallelism)[0] == ["a", "b", "c", "d"]
        shares = source.plan(0, 8, parallelism)
        assert len(shares) == parallelism

    def test_a_delimiter_that_the_network_cuts_in_two(self, server: Server, start: StartSocket) -> None:
        source = start(delimiter="<end>")
        server.accept()
        for piece in (b"one<e", b"nd>two", b"<end", b">", b"th\r", b"<end>"):
            server.send(piece)
            time.sleep(0.01)
        assert self.lines(source, 3)[0] == ["one", "two", "th\r"]

    @pytest.mark.parametrize("pieces", [[b"xaaayaazaaaaw"], [b"xa", b"aa", b"yaa", b"zaaa", b"aw"], None])
    def test_a_delimiter_that_overlaps_itself(
        self, server: Server, start: StartSocket, pieces: list[bytes] | None
    ) -> None:
        text = b"xaaayaazaaaaw"
        source = start(delimiter="aa")
        server.accept()
        for piece in pieces or [text[n : n + 1] for n in range(len(text))]:
            server.send(piece)
            time.sleep(0.005)
        assert self.lines(source, 4)[0] == ["x", "ay", "z", ""]
        # Half a delimiter at the break belongs to the record, and does not eat the next one's beginning.
        server.send(b"a")
        wait_for(lambda: source._log.durable == len(text) + 1)
        server.hang_up()
        server.accept()
        server.send(b"abaa")
        lines, position = self.lines(source, 6)
        assert lines == ["x", "ay", "z", "", "wa", "ab"]
        source.stop()
        again = start(delimiter="aa")
        assert read(SocketReader(), again.plan(0, position, 1)) == lines

    def test_half_a_record_is_not_offered(self, server: Server, start: StartSocket) -> None:
        source = start()
        server.accept()
        server.send(b"whole\nhal")
        lines, position = self.lines(source, 1)
        assert lines == ["whole"]
        wait_for(lambda: source._log.durable == len(b"whole\nhal"))
        assert source.latest(position, 10**6) == position

    def test_it_connects_again_and_a_broken_connection_ends_its_record(
        self, server: Server, start: StartSocket
    ) -> None:
        source = start()
        server.accept()
        server.send(b"one\nbro")
        wait_for(lambda: source._log.durable == 7)
        server.hang_up()
        server.accept()
        server.send(b"two\n")
        assert self.lines(source, 3)[0] == ["one", "bro", "two"]

    def test_it_waits_for_a_server_that_is_not_there_yet(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr(socket_module, "RETRY_SECONDS", 0.02)
        (port,) = free_ports(1)
        source = SocketEnumerator("127.0.0.1", port)
        source.start(str(tmp_path))
        try:
            assert source.latest(0, 1) == 0
            time.sleep(0.1)
            with socket.create_server(("127.0.0.1", port)) as late:
                late.settimeout(120)
                client, _ = late.accept()
                with client:
                    client.sendall(b"hello\n")
                    assert self.lines(source, 1)[0] == ["hello"]
        finally:
            source.stop()

    def test_a_restart_reads_again_what_was_received(self, server: Server, start: StartSocket) -> None:
        source = start()
        server.accept()
        server.send(b"one\ntwo\nthree\n")
        _, position = self.lines(source, 3)
        source.stop()
        again = start()
        # The batch that was planned before the crash is replayed as it was, without a connection.
        assert read(SocketReader(), again.plan(0, position, 2)) == ["one", "two", "three"]
        server.accept()
        server.send(b"four\n")
        assert self.lines(again, 1, position)[0] == ["four"]

    def test_a_restart_does_not_glue_half_a_record_to_a_new_connections_first(
        self, server: Server, start: StartSocket, tmp_path: Path
    ) -> None:
        (tmp_path / "log").mkdir()
        (tmp_path / "log" / "socket.log").write_bytes(b"whole\nhal")
        source = start()
        server.accept()
        server.send(b"new\n")
        assert self.lines(source, 3)[0] == ["whole", "hal", "new"]

    def test_batches_are_limited_and_end_at_a_record(self, server: Server, start: StartSocket) -> None:
        source = start()
        server.accept()
        lines = [f"line {n:03d}" for n in range(100)]
        server.send("".join(f"{line}\n" for line in lines).encode())
        self.lines(source, 100)
        position, found, batches = 0, [], 0
        while (end := source.latest(position, 2)) > position:
            found += read(SocketReader(), source.plan(position, end, 2))
            position, batches = end, batches + 1
        assert found == lines
        assert batches > 5

    def test_a_record_longer_than_a_batch(self, server: Server, start: StartSocket) -> None:
        source = start()
        server.accept()
        server.send(b"x" * 1000 + b"\n")
        wait_for(lambda: source.latest(0, 1) > 0)
        assert read(SocketReader(), source.plan(0, source.latest(0, 1), 1)) == ["x" * 1000]

    @staticmethod
    def logged(port: int, folder: Path, content: bytes) -> SocketEnumerator:
        """A source that has received this in an earlier run."""
        folder.mkdir()
        (folder / "socket.log").write_bytes(content)
        source = SocketEnumerator("127.0.0.1", port)
        source.start(str(folder))
        return source

    def test_fewer_records_are_never_more_bytes(self, server: Server, tmp_path: Path) -> None:
        line = 1_000_001
        source = self.logged(server.port, tmp_path / "log", (b"x" * (line - 1) + b"\n") * 20)
        try:
            ends = [source.latest(0, records) for records in (1, 100, 10_000, 20_000, 40_000, 10**6)]
            assert ends == [line, line, line, line, 2 * line, 20 * line]
            # There is more than a batch takes, so it counts as a full one: it does not wait for a checkpoint.
            for records in (1, 100, 40_000):
                assert source.count(0, source.latest(0, records)) >= records
            assert source.count(0, source.latest(0, 10**6)) == 20
        finally:
            source.stop()

    def test_a_long_record_is_looked_through_once(
        self, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = self.logged(server.port, tmp_path / "log", b"x" * (8 << 20) + b"\nnext\n")
        read: list[int] = []
        inner = RecordLog._read
        monkeypatch.setattr(RecordLog, "_read", lambda *one: read.append(one[2] - one[1]) or inner(*one))
        try:
            for records in [4096 >> n for n in range(13)] * 3:
                assert source.latest(0, records) == (8 << 20) + 1
            assert sum(read) < 10 << 20
        finally:
            source.stop()

    @pytest.mark.parametrize("ask", ["latest", "ended", "plan"])
    def test_a_position_that_the_log_does_not_have(self, server: Server, tmp_path: Path, ask: str) -> None:
        """The log was lost in part. Nothing is received that would then take the place of what is missing."""
        source = self.logged(server.port, tmp_path / "log", b"one\ntwo\n")
        asked: dict[str, Callable[[int], Any]] = {
            "latest": lambda position: source.latest(position, 100),
            "ended": source.ended,
            "plan": lambda position: source.plan(0, position, 1),
        }
        try:
            for _ in range(2):
                with pytest.raises(CheckpointError, match=r"position is 100.*socket\.log, has 8 bytes"):
                    asked[ask](100)
            server._socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.accept()
        finally:
            source.stop()
        assert (tmp_path / "log" / "socket.log").read_bytes() == b"one\ntwo\n"

    def test_a_batch_that_is_repeated_needs_no_connection(self, server: Server, tmp_path: Path) -> None:
        """As a replay does, which would take records away from the job."""
        source = self.logged(server.port, tmp_path / "log", b"one\ntwo\n")
        try:
            assert read(SocketReader(), source.plan(0, 8, 1)) == ["one", "two"]
            assert not source.ended(8)
            assert source._thread is None
        finally:
            source.stop()

    def test_what_is_received_does_not_make_a_wrong_position_right(self, server: Server, start: StartSocket) -> None:
        source = start()
        server.accept()
        server.send(b"one\ntwo\n")
        wait_for(lambda: source._log.complete == 8)
        with pytest.raises(CheckpointError, match=r"position is 4"):
            source.plan(0, 4, 1)
        assert read(SocketReader(), source.plan(0, source.latest(0, 100), 1)) == ["one", "two"]

    def test_a_full_disk_is_waited_for_and_nothing_is_lost(
        self,
        disk: Disk,
        server: Server,
        start: StartSocket,
        connected: SocketEnumerator,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        source = connected
        server.send(b"before\n")
        lines, position = self.lines(source, 1)
        disk.left = 1536
        expected = [f"line {n:05d}" for n in range(1000)]
        server.send("".join(f"{line}\n" for line in expected).encode())
        wait_for(lambda: disk.refused > 3)
        assert source.latest(position, 10**6) == position, "what is not on the disk does not count"
        disk.left = 1 << 40
        more, position = self.lines(source, len(expected), position)
        assert lines + more == ["before", *expected]
        server.send(b"behind\n")
        assert self.lines(source, 1, position)[0] == ["behind"]
        assert len([r for r in caplog.records if "cannot be written to the job's folder" in r.message]) == 1
        source.stop()
        # The log is what was sent, and no connection was given up for it.
        again = start()
        assert read(SocketReader(), again.plan(0, again._log.complete, 1)) == ["before", *expected, "behind"]

    def test_a_full_disk_when_a_connection_breaks(
        self, disk: Disk, server: Server, start: StartSocket, connected: SocketEnumerator
    ) -> None:
        source = connected
        server.send(b"one\nbro")
        wait_for(lambda: source._log.durable == 7)
        disk.left = 1
        server.hang_up()
        wait_for(lambda: disk.refused > 3)
        disk.left = 1 << 40
        server.accept()
        server.send(b"two\n")
        assert self.lines(source, 3)[0] == ["one", "bro", "two"]
        source.stop()
        again = start()
        assert read(SocketReader(), again.plan(0, again._log.complete, 1)) == ["one", "bro", "two"]

    def test_a_job_that_ends_while_the_disk_is_full(
        self, disk: Disk, server: Server, connected: SocketEnumerator, caplog: pytest.LogCaptureFixture
    ) -> None:
        disk.left = 2
        server.send(b"one\n")
        wait_for(lambda: disk.refused > 1)
        connected.stop()
        assert "4 bytes were received that could not be written" in caplog.text

    def test_without_retries_it_ends_with_the_connection(self, server: Server, start: StartSocket) -> None:
        source = start(max_retry=0)
        server.accept()
        server.send(b"one\ntwo")
        server.hang_up()
        wait_for(lambda: source._gone)
        lines, position = self.lines(source, 2)
        assert lines == ["one", "two"]
        assert source.ended(position)
        assert not source.ended(0)

    def test_it_pickles_without_its_connection(self, server: Server, start: StartSocket) -> None:
        source = start()
        server.accept()
        copy = pickle.loads(pickle.dumps(source))
        copy.stop()

    def test_stopping_ends_its_thread(self, server: Server, start: StartSocket) -> None:
        source = start()
        server.accept()
        source.stop()
        assert not [t for t in threading.enumerate() if t.name == "firesteel-socket" and t is source._thread]

    @pytest.mark.parametrize("port", [0, 65536, "80", None])
    def test_a_port_is_refused(self, port: Any) -> None:
        with pytest.raises(ProgramError, match="A port is a number from 1 to 65535"):
            SocketEnumerator("localhost", port)

    def test_an_empty_delimiter_is_refused(self) -> None:
        with pytest.raises(ProgramError, match="The delimiter of a socket stream must not be empty"):
            SocketEnumerator("localhost", 80, "")
