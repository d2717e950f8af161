"""Text files that change, are compressed, or are no text: nothing is lost or read twice without an error."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import os
import pickle
import re
import shlex
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sourcekit import read, read_all

from firesteel.connectors import text_reading
from firesteel.connectors.compressed import Lengths
from firesteel.connectors.text import BYTES_PER_RECORD, TextFileEnumerator, TextFileReader, TextFileSource
from firesteel.connectors.text_positions import TextPosition
from firesteel.errors import InputError, ProgramError


def numbered(name: str, low: int, high: int) -> list[str]:
    return [f"{name} {n:05d}" for n in range(low, high)]


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def read_from(source: TextFileEnumerator, position: Any, batch: int = 10**9) -> tuple[list[str], Any]:
    """All lines behind a position, and the position behind them. Positions go through JSON, as in Spark's log."""
    found: list[str] = []
    while not source.ended(position):
        end = json.loads(json.dumps(source.latest(position, batch)))
        found += lines_of(source, position, end)
        position = end
    return found, position


def lines_of(source: TextFileEnumerator, start: Any, end: Any, parallelism: int = 2) -> list[str]:
    return read(TextFileReader(), pickle.loads(pickle.dumps(source.plan(start, end, parallelism))))


def touch_later(path: Path) -> None:
    """A later modification time, however coarse the file system's clock is."""
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "abc":
        write(tmp_path / name, numbered(name, 0, 100))
    return tmp_path


def part_of(folder: Path, records: int) -> tuple[list[str], Any]:
    """What a first run reads of a folder before it is stopped."""
    source = TextFileEnumerator.of(str(folder))
    end = json.loads(json.dumps(source.latest(source.initial(), records)))
    return lines_of(source, source.initial(), end), end


ALL = [line for name in "abc" for line in numbered(name, 0, 100)]


class TestFilesThatChange:
    def test_a_file_that_is_truncated_while_it_is_read(self, folder: Path) -> None:
        source = TextFileEnumerator.of(str(folder))
        position = source.latest(source.initial(), 10)
        os.truncate(folder / "a", 500)
        with pytest.raises(InputError, match=r"The file .*/a was changed.* it had 800 bytes and has 500 now"):
            read_from(source, position)

    def test_a_file_that_is_truncated_between_the_plan_and_the_read(self, folder: Path) -> None:
        source = TextFileEnumerator.of(str(folder))
        position = source.latest(source.initial(), 10**6)
        os.truncate(folder / "b", 500)
        with pytest.raises(InputError, match=r"The file .*/b was changed"):
            lines_of(source, source.initial(), position)

    def test_a_file_that_is_truncated_in_the_middle_of_a_read(self, folder: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr(text_reading, "BLOCK_BYTES", 80)
        source = TextFileEnumerator.of(str(folder / "a"))
        ((one,),) = source.plan(source.initial(), source.latest(source.initial(), 10**6), 1)
        chunks = TextFileReader().read(one.split, one.start, one.end)
        next(chunks)
        os.truncate(folder / "a", 100)
        with pytest.raises(InputError, match=r"The file .*/a was changed"):
            list(chunks)

    def test_a_file_that_is_replaced_by_a_longer_one(self, folder: Path) -> None:
        source = TextFileEnumerator.of(str(folder / "a"))
        start, position = source.initial(), source.latest(source.initial(), 10)
        whole = source.latest(start, 10**6)
        write(folder / "new", numbered("z", 0, 200))
        os.replace(folder / "new", folder / "a")
        with pytest.raises(InputError, match=r"it was replaced by another one"):
            source.latest(position, 10)
        with pytest.raises(InputError, match=r"it was replaced by another one"):
            lines_of(source, position, whole)

    def test_a_file_that_is_written_anew_with_as_many_bytes(self, folder: Path) -> None:
        source = TextFileEnumerator.of(str(folder))
        position = source.latest(source.initial(), 10)
        write(folder / "a", numbered("z", 0, 100))
        touch_later(folder / "a")
        with pytest.raises(InputError, match=r"The file .*/a was changed.* it was written to"):
            source.latest(position, 10)

    def test_what_is_added_to_a_file_while_a_job_reads_it_is_left_for_the_next(self, folder: Path) -> None:
        source = TextFileEnumerator.of(str(folder))
        position = source.latest(source.initial(), 5)
        first = lines_of(source, source.initial(), position)
        with open(folder / "a", "a") as file:
            file.write("more\n")
        rest, end = read_from(source, position, 7)
        assert first + rest == ALL
        assert read_from(TextFileEnumerator.of(str(folder)), end)[0] == ["more"]

    def test_a_last_line_without_an_end_is_what_it_was(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("one\ntwo")
        source = TextFileEnumerator.of(str(tmp_path))
        with open(tmp_path / "a", "a") as file:
            file.write(" and more\nthree\n")
        lines, end = read_from(source, source.initial())
        assert lines == ["one", "two"]
        with pytest.raises(InputError, match="something was added to its last line"):
            TextFileEnumerator.of(str(tmp_path)).ended(end)

    def test_an_unfinished_line_that_was_read_is_not_added_to(self, tmp_path: Path) -> None:
        """A batch may end inside the last line, which it has read to the end."""
        file = tmp_path / "a"
        file.write_text("x" * 50 + "\n" + "L" * 60)
        first, position = part_of(file, 1)
        assert first == ["x" * 50, "L" * 60]
        with open(file, "a") as more:
            more.write("MMMM\nnew line\n")
        with pytest.raises(InputError, match="something was added to its last line"):
            read_from(TextFileEnumerator.of(str(file)), position)

    @pytest.mark.parametrize("added", ["MMMM\nnew line\n", "\n", ""])
    def test_an_unfinished_line_that_was_not_read_may_be_added_to(self, tmp_path: Path, added: str) -> None:
        file = tmp_path / "a"
        file.write_text("x" * 70 + "\n" + "L" * 60)
        first, position = part_of(file, 1)
        assert first == ["x" * 70]
        with open(file, "a") as more:
            more.write(added)
        assert read_from(TextFileEnumerator.of(str(file)), position)[0] == ("L" * 60 + added).splitlines()


class TestFilesThatChangeBetweenTwoRuns:
    @pytest.mark.parametrize("name", ["0", "bb", "z"], ids=["before", "between", "behind"])
    @pytest.mark.parametrize("records", [1, 20, 10**6], ids=["begun", "second file", "finished"])
    def test_a_file_that_was_added_is_read(self, folder: Path, name: str, records: int) -> None:
        first, position = part_of(folder, records)
        write(folder / name, numbered("new", 0, 50))
        rest, _ = read_from(TextFileEnumerator.of(str(folder)), position, 3)
        assert sorted(first + rest) == sorted(ALL + numbered("new", 0, 50))
        assert [line for line in first + rest if not line.startswith("new")] == ALL

    def test_a_batch_that_is_repeated_has_the_same_order(self, folder: Path) -> None:
        _, position = part_of(folder, 15)
        write(folder / "0", numbered("new", 0, 50))
        source = TextFileEnumerator.of(str(folder))
        end = source.latest(position, 12)
        lines = lines_of(source, position, end)
        assert {line[0] for line in lines} == {"n", "b"}
        again = TextFileEnumerator.of(str(folder))
        assert lines_of(again, position, json.loads(json.dumps(end))) == lines

    def test_a_finished_file_may_go(self, folder: Path) -> None:
        first, position = part_of(folder, 20)
        assert first[-1].startswith("b"), "the first file was finished"
        (folder / "a").unlink()
        rest, _ = read_from(TextFileEnumerator.of(str(folder)), position)
        assert first + rest == ALL

    def test_a_file_that_was_not_begun_may_go(self, folder: Path) -> None:
        first, position = part_of(folder, 1)
        (folder / "c").unlink()
        rest, _ = read_from(TextFileEnumerator.of(str(folder)), position)
        assert first + rest == ALL[:200]

    def test_a_file_that_was_begun_may_not_go(self, folder: Path) -> None:
        _, position = part_of(folder, 1)
        (folder / "a").unlink()
        with pytest.raises(InputError, match=r"The file .*/a is gone, and the job has not read all of it"):
            read_from(TextFileEnumerator.of(str(folder)), position)

    @pytest.mark.parametrize("records", [1, 10**6], ids=["begun", "finished"])
    def test_a_file_that_has_shrunk(self, folder: Path, records: int) -> None:
        _, position = part_of(folder, records)
        os.truncate(folder / "a", 400)
        with pytest.raises(InputError, match=r"The file .*/a was changed.* it had 800 bytes when the job's position"):
            read_from(TextFileEnumerator.of(str(folder)), position)

    @pytest.mark.parametrize("records", [1, 10**6], ids=["begun", "finished"])
    @pytest.mark.parametrize("lines", [100, 150], ids=["as long", "longer"])
    def test_a_file_that_was_replaced(self, folder: Path, records: int, lines: int) -> None:
        _, position = part_of(folder, records)
        write(folder / "a", numbered("z", 0, lines))
        touch_later(folder / "a")
        with pytest.raises(InputError, match=r"The file .*/a was changed.* it is not the file that was read"):
            read_from(TextFileEnumerator.of(str(folder)), position)

    @pytest.mark.parametrize("records", [1, 10**6], ids=["begun", "finished"])
    def test_lines_that_were_added_are_read(self, folder: Path, records: int) -> None:
        first, position = part_of(folder, records)
        with open(folder / "a", "a") as file:
            file.writelines(f"{line}\n" for line in numbered("a", 100, 150))
        rest, _ = read_from(TextFileEnumerator.of(str(folder)), position, 3)
        assert sorted(first + rest) == sorted(ALL + numbered("a", 100, 150))

    @pytest.mark.parametrize("records", [1, 10**6], ids=["begun", "finished"])
    @pytest.mark.parametrize("name", ["a", "a.gz"])
    def test_a_file_with_the_same_bytes_is_the_same_file(self, tmp_path: Path, name: str, records: int) -> None:
        """Put back after it was changed, or copied once more."""
        file, lines = tmp_path / name, numbered("a", 0, 10_000)
        content = "".join(f"{line}\n" for line in lines).encode()
        file.write_bytes(gzip.compress(content) if name == "a.gz" else content)
        first, position = part_of(tmp_path, records)
        before = file.read_bytes()
        file.write_bytes(b"z" * len(before))
        touch_later(file)
        with pytest.raises(InputError, match=r"The file .* was changed.* it is not the file that was read"):
            read_from(TextFileEnumerator.of(str(tmp_path)), position)
        file.write_bytes(before)
        touch_later(file)
        again = TextFileEnumerator.of(str(tmp_path))
        assert lines_of(again, again.initial(), position) == first, "a batch that was planned and is repeated"
        assert first + read_from(again, position, 500)[0] == lines

    def test_a_change_far_before_the_place_that_was_reached(self, tmp_path: Path) -> None:
        write(tmp_path / "a", numbered("a", 0, 10_000))
        _, position = part_of(tmp_path, 1000)
        content = (tmp_path / "a").read_bytes()
        (tmp_path / "a").write_bytes(b"z" * 40_000 + content[40_000:])
        touch_later(tmp_path / "a")
        with pytest.raises(InputError, match=r"it is not the file that was read"):
            read_from(TextFileEnumerator.of(str(tmp_path)), position)

    def test_an_edit_of_one_byte(self, tmp_path: Path) -> None:
        """Of the same length, and between the samples of a longer file."""
        write(tmp_path / "a", numbered("a", 0, 10_000))
        _, position = part_of(tmp_path, 1000)
        content = bytearray((tmp_path / "a").read_bytes())
        content[1500] ^= 1
        (tmp_path / "a").write_bytes(content)
        touch_later(tmp_path / "a")
        with pytest.raises(InputError, match=r"it is not the file that was read"):
            read_from(TextFileEnumerator.of(str(tmp_path)), position)

    def test_a_long_file_with_another_time(self, tmp_path: Path) -> None:
        """Whether it was edited or copied cannot be told, so it is not gone on from; the error says how it can be."""
        file = tmp_path / "a long one"
        write(file, numbered("a", 0, 300_000))
        source = TextFileEnumerator.of(str(tmp_path))
        position = source.latest(source.initial(), 40_000)
        assert position[str(file)][0] > 1 << 20
        touch_later(file)
        with pytest.raises(InputError, match="too long to tell a copy from an edit") as raised:
            read_from(TextFileEnumerator.of(str(tmp_path)), position)
        command = re.search(r"set its time back: (touch .*?)\. Lines would be lost", str(raised.value))
        assert command is not None
        subprocess.run(shlex.split(command[1]), check=True)
        rest, _ = read_from(TextFileEnumerator.of(str(tmp_path)), position, 300_000)
        assert rest[-1] == "a 299999"

    def test_positions_of_earlier_forms(self, folder: Path) -> None:
        """Five numbers for each file, with a checksum of the kilobyte before its place."""
        found = (folder / "a").stat()
        state = [found.st_size, found.st_mtime_ns]
        mark = zlib.crc32((folder / "a").read_bytes()[:640])
        whole = zlib.crc32((folder / "a").read_bytes())
        source = TextFileEnumerator.of(str(folder / "a"))
        assert read_from(source, {str(folder / "a"): [640, *state, mark, False]})[0] == numbered("a", 80, 100)
        assert source.ended({str(folder / "a"): [800, *state, whole, True]})

    def test_an_earlier_checksum_of_a_longer_file(self, tmp_path: Path) -> None:
        write(tmp_path / "a", numbered("a", 0, 10_000))
        content, found = (tmp_path / "a").read_bytes(), (tmp_path / "a").stat()
        position = {
            str(tmp_path / "a"): [40_000, len(content), found.st_mtime_ns, zlib.crc32(content[38_976:40_000]), False]
        }
        write(tmp_path / "a", numbered("a", 0, 10_100))
        assert read_from(TextFileEnumerator.of(str(tmp_path)), position)[0] == numbered("a", 5000, 10_100)

    def test_an_earlier_checksum_of_samples(self, tmp_path: Path) -> None:
        """It holds as long as the modification time is the same, or the file has grown."""
        write(tmp_path / "a", numbered("a", 0, 10_000))
        content, found = (tmp_path / "a").read_bytes(), (tmp_path / "a").stat()
        step, mark = (40_000 - 1024) / 15, 0
        for n in range(16):
            mark = zlib.crc32(content[round(n * step) : round(n * step) + 1024], mark)
        position = {str(tmp_path / "a"): [40_000, len(content), found.st_mtime_ns, mark]}
        write(tmp_path / "a", numbered("a", 0, 10_100))
        assert read_from(TextFileEnumerator.of(str(tmp_path)), position)[0][-1] == numbered("a", 0, 10_100)[-1]

    def test_positions_of_earlier_versions(self, folder: Path) -> None:
        """They counted the bytes of all files in a row."""
        source = TextFileEnumerator.of(str(folder / "a"))
        assert read_from(source, 80)[0] == numbered("a", 10, 100)
        assert source.ended(800)
        assert lines_of(source, 0, 80) == numbered("a", 0, 10)
        whole = TextFileEnumerator.of(str(folder))
        assert read_from(whole, 0)[0] == ALL
        with pytest.raises(InputError, match="saved by an earlier version of Firesteel"):
            whole.latest(80, 10)


def test_positions_are_small(folder: Path) -> None:
    source = TextFileEnumerator.of(str(folder))
    _, end = read_from(source, source.initial())
    assert len(json.dumps(end)) < len(str(folder)) + 3 * 50


class TestCosts:
    def test_a_poll_with_nothing_to_read_looks_at_no_file(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = TextFileEnumerator.of(str(folder))
        _, end = read_from(source, source.initial())
        parsed: list[Any] = []
        asked: list[Any] = []
        of, left = TextPosition.of, TextPosition.left
        monkeypatch.setattr(TextPosition, "of", lambda *one: parsed.append(one) or of(*one))
        monkeypatch.setattr(TextPosition, "left", lambda self: asked.append(self) or left(self))
        again = TextFileEnumerator.of(str(folder))
        for _ in range(100):
            position = json.loads(json.dumps(end))
            assert again.latest(position, 100) is position
            assert again.ended(position)
            assert again.count(position, position) == again.size(position, position) == 0
        assert len(parsed) == len(asked) == 1

    def test_a_batch_takes_what_the_last_one_knew(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        parsed: list[Any] = []
        of = TextPosition.of
        monkeypatch.setattr(TextPosition, "of", lambda *one: parsed.append(one) or of(*one))
        source = TextFileEnumerator.of(str(folder))
        position, batches = source.initial(), 0
        while not source.ended(position):
            end = json.loads(json.dumps(source.latest(position, 1)))
            source.count(position, end)
            source.size(position, end)
            source.plan(position, end, 2)
            position, batches = end, batches + 1
        assert batches > 30
        assert len(parsed) == 1


def zstd(content: bytes) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.CompressedOutputStream(buffer, "zstd") as stream:
        stream.write(content)
    return bytes(buffer.getvalue().to_pybytes())


CODECS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstd}


@pytest.mark.parametrize("ending", CODECS)
class TestCompressed:
    LINES = numbered("line", 0, 3000)

    @pytest.fixture
    def file(self, tmp_path: Path, ending: str) -> Path:
        file = tmp_path / f"text.{ending}"
        file.write_bytes(CODECS[ending]("".join(f"{line}\n" for line in self.LINES).encode()))
        return file

    @pytest.mark.parametrize("batch", [1, 7, 100, 10**6])
    def test_every_line_once(self, file: Path, batch: int) -> None:
        source = TextFileEnumerator.of(str(file))
        assert read_from(source, source.initial(), batch)[0] == self.LINES

    def test_a_task_goes_on_where_it_was_and_a_new_one_finds_the_place(self, file: Path, monkeypatch: Any) -> None:
        source = TextFileEnumerator.of(str(file))
        ends = [source.initial()]
        while not source.ended(ends[-1]):
            ends.append(source.latest(ends[-1], 50))
        shares = [source.plan(a, b, 1)[0] for a, b in itertools.pairwise(ends)]
        opened: list[str] = []
        monkeypatch.setattr(
            text_reading,
            "open_binary",
            lambda path, *more, o=text_reading.open_binary: opened.append(path) or o(path, *more),
        )
        reader = TextFileReader()
        assert read(reader, shares) == self.LINES
        assert len(opened) == 1
        # A batch that is repeated, and one that another process reads.
        for at in (5, 3):
            again = read(reader, [shares[at]])
            assert again == read(TextFileReader(), [shares[at]])
            assert set(again) < set(self.LINES)

    def test_several_subtasks_share_several_files(self, file: Path, ending: str) -> None:
        (file.parent / f"text2.{ending}").write_bytes(file.read_bytes())
        write(file.parent / "text3", ["plain"] * 100)
        source = TextFileEnumerator.of(str(file.parent))
        end = source.latest(source.initial(), 10**6)
        assert source.ended(end)
        assert lines_of(source, source.initial(), end, 3) == self.LINES * 2 + ["plain"] * 100

    def test_the_end_is_known_with_the_last_line(self, file: Path) -> None:
        size = 11 * len(self.LINES)
        for count in (size - 1, size, size + 1):
            assert Lengths().advance(str(file), 0, count) == (min(count, size), count >= size)

    def test_one_that_was_changed(self, file: Path, ending: str) -> None:
        source = TextFileEnumerator.of(str(file))
        position = source.latest(source.initial(), 10)
        file.write_bytes(file.read_bytes() + CODECS[ending](b"more\n"))
        with pytest.raises(InputError, match=r"The file .* was changed"):
            source.latest(position, 10)
        with pytest.raises(InputError, match=r"The file .* was changed"):
            TextFileEnumerator.of(str(file)).ended(position)

    def test_one_that_is_damaged(self, file: Path) -> None:
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2])
        source = TextFileEnumerator.of(str(file))
        with pytest.raises(InputError, match=rf"The file {file} cannot be read as (gzip|bz2|zstd)"):
            source.latest(source.initial(), 10**6)


class TestNotText:
    @pytest.mark.parametrize("ending", ["", *CODECS])
    def test_the_line_that_is_not_valid_is_named(self, tmp_path: Path, ending: str) -> None:
        file = tmp_path / f"text.{ending}"
        content = b"".join(b"line %d\n" % n for n in range(20_000)) + b"caf\xe9\nend\n"
        file.write_bytes(CODECS[ending](content) if ending else content)
        source = TextFileEnumerator.of(str(file))
        with pytest.raises(
            InputError, match=rf"{file}, line 20001: byte 0xe9 at place 4 of the line is not valid UTF-8"
        ):
            read_from(source, source.initial(), 1000)
        for errors, expected in (("replace", "caf\ufffd"), ("ignore", "caf")):
            reader = TextFileReader(errors=errors)
            assert read_all(source, reader)[-2:] == [expected, "end"]

    def test_an_unknown_way_to_replace(self, tmp_path: Path) -> None:
        (tmp_path / "text").touch()
        with pytest.raises(ProgramError, match="errors is 'mend'; it must be 'strict', 'replace'"):
            TextFileSource(str(tmp_path / "text"), errors="mend").create_enumerator()

    def test_a_pipe_is_refused(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for path in (tmp_path / "pipe", tmp_path):
            with pytest.raises(ProgramError, match=r"pipe is a named pipe\. A job must be able to"):
                TextFileEnumerator.of(str(path))
        with pytest.raises(ProgramError, match="/dev/null is not a regular file"):
            TextFileEnumerator.of("/dev/null")


def test_large_lines_do_not_pile_up(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes((b"x" * (3 << 20) + b"\n") * 7)
    source = TextFileEnumerator.of(str(tmp_path / "text"))
    ((one,),) = source.plan(source.initial(), source.latest(source.initial(), 1 << 30), 1)
    assert [len(lines) for lines, _ in TextFileReader().read(one.split, one.start, one.end)] == [1] * 7
    assert source.count(source.initial(), source.latest(source.initial(), 10)) == 10
    assert source.size(source.initial(), source.latest(source.initial(), 10)) == 10 * BYTES_PER_RECORD
