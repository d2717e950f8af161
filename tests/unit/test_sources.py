"""Sources: every record once, whatever the shares, the batches, the restarts."""

from __future__ import annotations

import errno
import itertools
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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sourcekit import read, read_all

from firesteel.connectors import record_log
from firesteel.connectors import socket as socket_module
from firesteel.connectors.blocks import blocks
from firesteel.connectors.collection import CollectionEnumerator, CollectionReader
from firesteel.connectors.record_log import RecordLog
from firesteel.connectors.sequence import GeneratorReader, IndexEnumerator, NumberReader
from firesteel.connectors.socket import SocketEnumerator, SocketReader
from firesteel.connectors.source import CHUNK_RECORDS, SplitRange
from firesteel.connectors.text import TextFileEnumerator, TextFileReader, TextFileSource
from firesteel.connectors.text_positions import FileState
from firesteel.connectors.text_reading import FileSplit
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import CheckpointError, ProgramError


class TestBlocks:
    @given(st.integers(0, 1000), st.integers(0, 100), st.integers(1, 12))
    def test_contiguous_complete_and_of_nearly_equal_size(self, start: int, size: int, parts: int) -> None:
        found = blocks(start, start + size, parts)
        assert len(found) == parts
        numbers = [n for block in found if block is not None for n in range(*block)]
        assert numbers == list(range(start, start + size))
        sizes = [0 if block is None else block[1] - block[0] for block in found]
        assert max(sizes) - min(sizes) <= 1

    @pytest.mark.parametrize(("size", "parts"), [(1, 2), (1, 3), (2, 3), (3, 8)])
    def test_small_batches_go_to_all_by_turns(self, size: int, parts: int) -> None:
        seen = set()
        for start in range(0, size * parts, size):
            seen |= {n for n, block in enumerate(blocks(start, start + size, parts)) if block is not None}
        assert seen == set(range(parts))


class TestCollection:
    @settings(deadline=None)
    @given(st.lists(st.integers(), max_size=50), st.integers(1, 20), st.integers(1, 4))
    def test_every_element_once_and_in_order(self, values: list[int], batch: int, parallelism: int) -> None:
        assert read_all(CollectionEnumerator.of(values), CollectionReader(), batch, parallelism) == values

    def test_shares_across_the_borders_of_pieces(self) -> None:
        values = list(range(2 * CHUNK_RECORDS + 10))
        source = CollectionEnumerator.of(values)
        assert read_all(source, CollectionReader(), CHUNK_RECORDS - 7, 3) == values
        low, high = CHUNK_RECORDS - 2, CHUNK_RECORDS + 2
        assert read(CollectionReader(), source.plan(low, high, 1)) == values[low:high]

    def test_what_travels_to_tasks_has_no_data_but_reads_any_share(self) -> None:
        reader = CollectionReader()
        assert len(pickle.dumps(reader)) < 300
        assert read(reader, CollectionEnumerator.of(["x" * 1000]).plan(0, 1, 1)) == ["x" * 1000]

    def test_a_changed_list_changes_nothing(self) -> None:
        values = [[1]]
        source = CollectionEnumerator.of(values)
        values[0].append(2)
        values.append([3])
        assert read_all(source, CollectionReader()) == [[1]]


class TestSequence:
    @pytest.mark.parametrize(("start", "end"), [(1, 10), (-3, 3), (7, 7)])
    @pytest.mark.parametrize("batch", [1, 3, 100])
    def test_both_ends_included(self, start: int, end: int, batch: int) -> None:
        source = NumberSequenceSource(start, end)
        assert read_all(source.create_enumerator(), source.create_reader(), batch) == list(range(start, end + 1))

    def test_large_shares_come_in_chunks(self) -> None:
        sizes = [len(values) for values, _ in NumberReader(0).read(None, 0, 3 * CHUNK_RECORDS + 1)]
        assert sizes == [CHUNK_RECORDS] * 3 + [1]

    def test_an_empty_sequence_is_refused(self) -> None:
        with pytest.raises(ProgramError, match="needs start <= end, got 5 and 4"):
            NumberSequenceSource(5, 4)


class TestGenerator:
    def test_a_function_of_the_index(self) -> None:
        source = DataGeneratorSource(lambda index: index * index, 7)
        assert source.create_enumerator().bounded
        assert read_all(source.create_enumerator(), source.create_reader(), 3) == [0, 1, 4, 9, 16, 25, 36]

    def test_without_a_count_it_never_ends(self) -> None:
        source = IndexEnumerator(None)
        assert not source.bounded
        assert source.latest(10**12, 100) == 10**12 + 100
        assert not source.ended(10**12)

    def test_nothing_at_all(self) -> None:
        assert read_all(IndexEnumerator(0), GeneratorReader(str)) == []

    def test_what_is_refused(self) -> None:
        with pytest.raises(ProgramError, match="count must be 0 or more"):
            DataGeneratorSource(str, count=-1)
        with pytest.raises(ProgramError, match="records_per_second must be above 0, got 0"):
            DataGeneratorSource(str, records_per_second=0)
        with pytest.raises(ProgramError, match="Expected a MapFunction or a callable"):
            DataGeneratorSource("text")


def ranges(path: Path, *bounds: int) -> list[list[SplitRange[FileSplit]]]:
    """Shares of one file, with these bounds."""
    state = FileState(str(path), path.stat().st_size, path.stat().st_mtime_ns)
    return [[SplitRange(FileSplit(state, None), low, high)] for low, high in itertools.pairwise(bounds) if low < high]


class TestText:
    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        lines=st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)),
        ends=st.data(),
        last=st.booleans(),
    )
    def test_any_cut_of_the_bytes_gives_every_line_once(
        self, tmp_path: Path, lines: list[str], ends: Any, last: bool
    ) -> None:
        """Line ends of both kinds, with and without one at the end of the file."""
        text = "".join(line + ends.draw(st.sampled_from(["\n", "\r\n"])) for line in lines)
        if not last and lines:
            text = text.removesuffix("\n").removesuffix("\r")
        expected = lines[:-1] if not last and lines and not lines[-1] else lines
        file = tmp_path / "text"
        content = text.encode()
        file.write_bytes(content)
        cuts = sorted(ends.draw(st.lists(st.integers(0, len(content)), max_size=4)))
        bounds = [0, *cuts, len(content)]
        assert read(TextFileReader(), ranges(file, *bounds)) == expected

    def test_every_single_cut(self, tmp_path: Path) -> None:
        content = "a\r\nbb\n\nçé\n\r\nlast".encode()
        file = tmp_path / "text"
        file.write_bytes(content)
        for cut in range(1, len(content)):
            assert read(TextFileReader(), ranges(file, 0, cut, len(content))) == ["a", "bb", "", "çé", "", "last"]

    @pytest.mark.parametrize("parallelism", [1, 3])
    def test_batches_smaller_than_a_line(self, tmp_path: Path, parallelism: int) -> None:
        lines = ["x" * 300, "y", "z" * 500]
        (tmp_path / "text").write_text("\n".join(lines))
        assert read_all(TextFileEnumerator.of(str(tmp_path / "text")), TextFileReader(), 1, parallelism) == lines

    def test_an_empty_file(self, tmp_path: Path) -> None:
        (tmp_path / "text").touch()
        source = TextFileEnumerator.of(str(tmp_path / "text"))
        assert source.ended(source.initial())
        assert read_all(source, TextFileReader()) == []

    def test_a_folder_is_read_file_by_file_without_hidden_ones(self, tmp_path: Path) -> None:
        (tmp_path / "b").write_text("b1\nb2")
        (tmp_path / "a").write_text("a1\n")
        (tmp_path / "empty").touch()
        (tmp_path / "_SUCCESS").write_text("no")
        (tmp_path / ".hidden").write_text("no")
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "c").write_text("c1")
        (tmp_path / "_tmp").mkdir()
        (tmp_path / "_tmp" / "d").write_text("no")
        for batch, parallelism in ((1, 1), (1000, 3)):
            source = TextFileEnumerator.of(f"file://{tmp_path}")
            assert read_all(source, TextFileReader(), batch, parallelism) == ["a1", "b1", "b2", "c1"]

    def test_a_single_carriage_return_belongs_to_the_line_end(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_bytes(b"a\r\r\nb\rc\n")
        assert read_all(TextFileEnumerator.of(str(tmp_path / "text")), TextFileReader()) == ["a\r", "b\rc"]

    def test_other_character_sets(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_bytes("é\nü".encode("latin-1"))
        assert read_all(TextFileEnumerator.of(str(tmp_path / "text")), TextFileReader("latin-1")) == ["é", "ü"]
        (tmp_path / "bom").write_bytes("é\nü".encode("utf-8-sig"))
        assert read_all(TextFileEnumerator.of(str(tmp_path / "bom")), TextFileReader("utf-8-sig")) == ["é", "ü"]

    def test_what_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ProgramError, match=r"there is no file or folder '.*nothing'"):
            TextFileEnumerator.of(str(tmp_path / "nothing"))
        (tmp_path / "text").touch()
        with pytest.raises(ProgramError, match="Python knows no character set 'klingon'"):
            TextFileSource(str(tmp_path / "text"), "klingon").create_enumerator()
        for wide in ("UTF-16", "utf-16-be", "utf-32"):
            with pytest.raises(ProgramError, match=r"cannot be told apart by their bytes\. Convert the file"):
                TextFileSource(str(tmp_path / "text"), wide).create_enumerator()


class Server:
    """Sends what it is told to whoever is connected."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(10)
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
    end = time.monotonic() + 10
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
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        source = SocketEnumerator("127.0.0.1", port)
        source.start(str(tmp_path))
        try:
            assert source.latest(0, 1) == 0
            time.sleep(0.1)
            with socket.create_server(("127.0.0.1", port)) as late:
                late.settimeout(10)
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
        server: Server,
        start: StartSocket,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        disk = Disk(monkeypatch)
        source = start()
        server.accept()
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
        self, server: Server, start: StartSocket, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        disk = Disk(monkeypatch)
        source = start()
        server.accept()
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
        self,
        server: Server,
        start: StartSocket,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        disk = Disk(monkeypatch)
        source = start()
        server.accept()
        disk.left = 2
        server.send(b"one\n")
        wait_for(lambda: disk.refused > 1)
        source.stop()
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
