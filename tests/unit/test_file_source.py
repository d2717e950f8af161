"""Files as a source: which ones, in which pieces, from which place on, and what happens when they change."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import pickle
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest
from sourcekit import read, read_all

from firesteel.common.time import Duration
from firesteel.connectors.files import enumerator as enumerator_module
from firesteel.connectors.files import known_files
from firesteel.connectors.files.enumerator import FileEnumerator
from firesteel.connectors.files.known_files import MonitoredFiles
from firesteel.datastream.connectors.file_system import (
    Block,
    BulkFormat,
    FileEnumeratorProvider,
    FileFormat,
    FileSource,
    InputFile,
    LineFormat,
    Lines,
    StreamFormat,
)
from firesteel.errors import CheckpointError, InputError, ProgramError


class Words(StreamFormat[str]):
    """Words of four letters, one after the other."""

    bytes_per_record = 4

    def read_records(self, stream: IO[bytes], path: str) -> Iterator[str]:
        while word := stream.read(4):
            yield word.decode()


class Pages(BulkFormat[str]):
    """Blocks of ten bytes: ten letters each."""

    bytes_per_record = 1

    def blocks(self, file: InputFile) -> Sequence[Block]:
        return [Block(10, 10)] * (file.size // 10)

    def read_blocks(self, file: InputFile, first: int, last: int) -> Iterator[list[str]]:
        with file.open() as opened:
            opened.seek(first * 10)
            for _ in range(first, last):
                yield list(opened.read(10).decode())


class Numbers(LineFormat[int]):
    header_lines = 1

    def decode(self, lines: Lines) -> list[int]:
        assert lines.header == [b"number\n"]
        found = []
        for index, line in enumerate(lines.lines):
            if not line.strip().isdigit():
                raise lines.failed(index, "this is no number")
            found.append(int(line))
        return found


def source(form: FileFormat[Any], *paths: Path, **chosen: Any) -> FileSource:
    builder = FileSource.for_file_format(form, *paths)
    if "monitor" in chosen:
        builder.monitor_continuously(chosen["monitor"])
    if "retention" in chosen:
        builder.set_retention(chosen["retention"])
    if chosen.get("whole"):
        builder.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
    return builder.build()


def all_of(form: FileFormat[Any], *paths: Path, batch: int = 10**9, parallelism: int = 2, **chosen: Any) -> list[Any]:
    made = source(form, *paths, **chosen)
    return read_all(made.create_enumerator(), made.create_reader(), batch, parallelism)


LINES = StreamFormat.text_line_format()


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumerator_module, "SMALL_FILE", 0)


class TestWhichFiles:
    def test_folders_are_read_to_their_depth_without_what_is_hidden(self, tmp_path: Path) -> None:
        for name in ("b.txt", "a.txt", "deep/er/c.txt", ".hidden", "_temporary/d.txt", "deep/.fs/e.txt"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{name}\n")
        (tmp_path / "empty").touch()
        assert all_of(LINES, tmp_path) == ["a.txt", "b.txt", "deep/er/c.txt"]

    def test_several_paths_each_file_once(self, tmp_path: Path) -> None:
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "a.txt").write_text("a\n")
        (tmp_path / "b.txt").write_text("b\n")
        found = all_of(LINES, tmp_path / "one", tmp_path / "b.txt", tmp_path / "one" / "a.txt")
        assert sorted(found) == ["a", "b"]

    def test_a_path_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ProgramError, match=r"there is no file or folder .*/nothing"):
            source(LINES, tmp_path / "nothing").create_enumerator()

    def test_an_empty_folder_ends_at_once(self, tmp_path: Path) -> None:
        assert all_of(LINES, tmp_path) == []

    def test_the_kinds_of_formats_are_told_apart(self, tmp_path: Path) -> None:
        with pytest.raises(ProgramError, match="belongs to for_bulk_file_format"):
            FileSource.for_record_stream_format(Pages(), tmp_path)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="to for_record_stream_format"):
            FileSource.for_bulk_file_format(LINES, tmp_path)  # type: ignore[arg-type]
        with pytest.raises(ProgramError, match="at least one path"):
            FileSource.for_bulk_file_format(Pages())


@pytest.mark.parametrize("batch", [1, 3, 10**9])
@pytest.mark.parametrize("parallelism", [1, 3])
class TestEveryRecordOnce:
    def test_lines(self, tmp_path: Path, batch: int, parallelism: int) -> None:
        expected = [f"line {number} of many, with some more text to make it long enough" for number in range(40)]
        (tmp_path / "a").write_text("".join(f"{line}\n" for line in expected[:25]))
        (tmp_path / "b").write_text("".join(f"{line}\n" for line in expected[25:]))
        assert all_of(LINES, tmp_path, batch=batch, parallelism=parallelism) == expected

    @pytest.mark.parametrize("ending", [".gz", ".bz2"])
    def test_compressed_lines(self, tmp_path: Path, batch: int, parallelism: int, ending: str) -> None:
        expected = [f"line {number}" for number in range(40)]
        text = "".join(f"{line}\n" for line in expected).encode()
        (tmp_path / f"a{ending}").write_bytes((gzip if ending == ".gz" else bz2).compress(text))
        assert all_of(LINES, tmp_path, batch=batch, parallelism=parallelism) == expected

    def test_lines_behind_a_header(self, tmp_path: Path, batch: int, parallelism: int) -> None:
        for name, numbers in {"a": range(30), "b": range(30, 60)}.items():
            (tmp_path / name).write_text("number\n" + "".join(f"{number}\n" for number in numbers))
        assert all_of(Numbers(), tmp_path, batch=batch, parallelism=parallelism) == list(range(60))

    def test_a_stream_format(self, tmp_path: Path, batch: int, parallelism: int) -> None:
        expected = [f"{number:04}" for number in range(20)]
        (tmp_path / "a").write_text("".join(expected[:7]))
        (tmp_path / "b.gz").write_bytes(gzip.compress("".join(expected[7:]).encode()))
        assert all_of(Words(), tmp_path, batch=batch, parallelism=parallelism) == expected

    def test_a_bulk_format(self, tmp_path: Path, batch: int, parallelism: int) -> None:
        (tmp_path / "a").write_text("abcdefghij" * 7)
        (tmp_path / "b").write_text("0123456789" * 2)
        assert all_of(Pages(), tmp_path, batch=batch, parallelism=parallelism) == list(
            "abcdefghij" * 7 + "0123456789" * 2
        )


class TestWhoReads:
    def test_a_large_file_is_shared_out_where_its_format_allows_it(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("abcdefghij" * 8)
        shares = [len(share) for share in _shares(source(Pages(), tmp_path))]
        assert shares == [1, 1, 1, 1]
        assert [len(share) for share in _shares(source(Pages(), tmp_path, whole=True))] == [1, 0, 0, 0]
        assert [len(share) for share in _shares(source(Words(), tmp_path))] == [1, 0, 0, 0]

    def test_small_files_are_not_opened_to_plan_a_batch(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(enumerator_module, "SMALL_FILE", 100)
        monkeypatch.setattr(Pages, "blocks", lambda self, file: pytest.fail("it was opened"))
        (tmp_path / "a").write_text("abcdefghij")
        assert [len(share) for share in _shares(source(Pages(), tmp_path))] == [1, 0, 0, 0]


def _shares(made: FileSource) -> list[Any]:
    planner = made.create_enumerator()
    return planner.plan(None, planner.latest(None, 10**9), 4)


class TestPositions:
    def test_a_batch_follows_from_its_positions_alone(self, tmp_path: Path) -> None:
        for name in "abc":
            (tmp_path / name).write_text(f"{name}\n" * 10)
        made = source(LINES, tmp_path)
        planner = made.create_enumerator()
        first = planner.latest(None, 1)
        second = json.loads(json.dumps(planner.latest(first, 1)))
        expected = read(made.create_reader(), planner.plan(first, second, 3))
        # Another process, which knows nothing of the folder.
        other = FileEnumerator(MonitoredFiles((), None, 1.0, None), LINES)
        assert read(made.create_reader(), other.plan(first, second, 3)) == expected == ["b"] * 10

    def test_one_of_a_newer_version_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("a\n")
        planner = source(LINES, tmp_path).create_enumerator()
        newer = {**planner.latest(None, 10), "format": 99}
        for ask in (lambda: planner.latest(newer, 10), lambda: planner.plan(None, newer, 1)):
            with pytest.raises(CheckpointError, match="The position of a file source has format 99, of a newer"):
                ask()

    def test_they_do_not_grow_with_the_files_of_a_static_set(self, tmp_path: Path) -> None:
        for number in range(300):
            (tmp_path / f"{number:05}").write_text("x\n")
        planner = source(LINES, tmp_path).create_enumerator()
        position, sizes = None, []
        while not planner.ended(position):
            position = planner.latest(position, 10)
            sizes.append(len(json.dumps(position)))
        assert len(sizes) == 30
        assert max(sizes) - sizes[0] < 20

    def test_those_of_a_monitored_folder_take_16_bytes_a_file(self, tmp_path: Path) -> None:
        for number in range(300):
            (tmp_path / f"{number:05}").write_text("x\n")
        planner = source(LINES, tmp_path, monitor=Duration.of_hours(1)).create_enumerator()
        position, sizes = planner.latest(None, 1), []
        for _ in range(100):
            position = json.loads(json.dumps(planner.latest(position, 1)))
            sizes.append(len(json.dumps(position)))
        assert 15 < (sizes[-1] - sizes[0]) / 99 < 18

    def test_planning_costs_what_it_plans(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No file that was read before is looked at again, and none that is not yet due."""
        for number in range(50):
            (tmp_path / f"{number:05}").write_text("abcdefghij" * 2)
        planner = source(Pages(), tmp_path).create_enumerator()
        opened: list[str] = []
        blocks = Pages.blocks
        monkeypatch.setattr(Pages, "blocks", lambda self, file: opened.append(file.path) or blocks(self, file))  # type: ignore[func-returns-value]
        position = None
        for number in range(10):
            position = planner.latest(position, 20)
            assert [os.path.basename(path) for path in opened] == [f"{number:05}"]
            opened.clear()

    def test_it_goes_on_inside_a_file_in_a_program_that_is_built_anew(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("abcdefghij" * 5)
        (tmp_path / "b.gz").write_bytes(gzip.compress(b"0123456789" * 5))
        for form, plain in ((Words(), "a"), (Words(), "b.gz"), (LINES, "a"), (Pages(), "a")):
            made = source(form, tmp_path / plain)
            expected = read_all(made.create_enumerator(), made.create_reader())
            position, found = None, []
            while True:
                # A new one for each batch, as after a crash.
                again = pickle.loads(pickle.dumps(source(form, tmp_path / plain)))
                planner = again.create_enumerator()
                if planner.ended(position):
                    break
                end = json.loads(json.dumps(planner.latest(position, 2)))
                found += read(again.create_reader(), planner.plan(position, end, 2))
                position = end
            assert found == expected


class TestStaticSet:
    def test_new_files_do_not_belong_to_it(self, tmp_path: Path) -> None:
        _old(tmp_path / "b", "b\n")
        position = source(LINES, tmp_path).create_enumerator().latest(None, 0)
        (tmp_path / "a").write_text("a\n")
        (tmp_path / "c").write_text("c\n")
        made = source(LINES, tmp_path)
        planner = made.create_enumerator()
        end = planner.latest(position, 10**6)
        assert read(made.create_reader(), planner.plan(position, end, 1)) == ["b"]
        assert planner.ended(end)

    @pytest.mark.parametrize("how", ["gone", "replaced", "another instead"])
    def test_a_file_that_was_not_begun_is_missed(self, tmp_path: Path, how: str) -> None:
        for name in "abc":
            _old(tmp_path / name, f"{name}\n")
        position = source(LINES, tmp_path).create_enumerator().latest(None, 1)
        if how == "gone":
            (tmp_path / "b").unlink()
        elif how == "another instead":
            (tmp_path / "b").rename(tmp_path / "b2")
        else:
            (tmp_path / "b").write_text("another\n")
        text = r"had 2 files left to read behind .*/a: .*/b " + ("was changed" if how == "replaced" else "is gone")
        with pytest.raises(InputError, match=text + r"\. Put them back"):
            source(LINES, tmp_path).create_enumerator().latest(position, 10)
        # Of a checkpoint without names.
        del position["known"]["next"]
        if how != "another instead":
            with pytest.raises(InputError, match=r"behind .*/a: 1 are gone or were changed\."):
                source(LINES, tmp_path).create_enumerator().latest(position, 10)

    def test_of_many_missing_ones_some_are_named(self, tmp_path: Path) -> None:
        for number in range(100):
            _old(tmp_path / f"{number:03}", "x\n")
        position = source(LINES, tmp_path).create_enumerator().latest(None, 1)
        for number in (3, 5, 7, 8, 90):
            (tmp_path / f"{number:03}").unlink()
        text = (
            "had 99 files left to read behind .*/000: .*/003 is gone, .*/005 is gone, .*/007 is gone, 2 more are gone"
        )
        with pytest.raises(InputError, match=text):
            source(LINES, tmp_path).create_enumerator().latest(position, 10)

    @pytest.mark.parametrize("form", [LINES, Words(), Pages()])
    def test_a_file_that_vanished_is_named(self, tmp_path: Path, form: FileFormat[Any]) -> None:
        (tmp_path / "a").write_text("abcdefghij" * 5)
        made = source(form, tmp_path)
        planner = made.create_enumerator()
        end = planner.latest(None, 10)
        (tmp_path / "a").unlink()
        with pytest.raises(InputError, match=r"The file .*/a is gone"):
            read(made.create_reader(), planner.plan(None, end, 1))
        if end["open"] is not None:
            with pytest.raises(InputError, match=r"The file .*/a is gone"):
                planner.latest(end, 10)

    @pytest.mark.parametrize("form", [LINES, Words(), Pages()])
    def test_a_file_that_was_replaced_is_named(self, tmp_path: Path, form: FileFormat[Any]) -> None:
        _old(tmp_path / "a", "abcdefghij" * 50)
        made = source(form, tmp_path)
        planner = made.create_enumerator()
        end = planner.latest(None, 3)
        assert end["open"] is not None
        (tmp_path / "a").write_text("ABCDEFGHIJ" * 50)
        with pytest.raises(InputError, match=r"The file .*/a was changed while a job reads it"):
            planner.latest(end, 3)
        with pytest.raises(InputError, match=r"The file .*/a was changed while a job reads it"):
            read(made.create_reader(), planner.plan(None, end, 1))

    def test_lines_may_be_added_to_a_file_that_is_read(self, tmp_path: Path) -> None:
        _old(tmp_path / "a", "one\n" * 100)
        made = source(LINES, tmp_path)
        planner = made.create_enumerator()
        first = planner.latest(None, 1)
        with (tmp_path / "a").open("a") as file:
            file.write("more\n")
        found = read(made.create_reader(), planner.plan(None, first, 1))
        while not planner.ended(first):
            second = planner.latest(first, 1)
            found += read(made.create_reader(), planner.plan(first, second, 1))
            first = second
        assert found == ["one"] * 100

    @pytest.mark.parametrize("form", [Words(), Pages()])
    def test_nothing_may_be_added_to_a_file_of_another_format(self, tmp_path: Path, form: FileFormat[Any]) -> None:
        _old(tmp_path / "a", "abcdefghij" * 50)
        planner = source(form, tmp_path).create_enumerator()
        first = planner.latest(None, 1)
        with (tmp_path / "a").open("a") as file:
            file.write("abcdefghij")
        with pytest.raises(InputError, match="it had 500 bytes and has 510 now"):
            planner.latest(first, 1)

    def test_a_file_that_was_put_back_is_the_same(self, tmp_path: Path) -> None:
        _old(tmp_path / "a", "abcdefghij" * 50)
        made = source(Pages(), tmp_path)
        planner = made.create_enumerator()
        first = planner.latest(None, 10)
        (tmp_path / "a").unlink()
        (tmp_path / "a").write_text("abcdefghij" * 50)
        second = planner.latest(first, 10)
        assert read(made.create_reader(), planner.plan(first, second, 1)) == list("abcdefghij")


class TestMonitoring:
    def test_new_files_are_read_once_the_oldest_first(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path)
        folder.add("b", age=20)
        folder.add("a", age=10)
        assert folder.batch() == ["b", "a"]
        assert folder.batch() == []
        folder.add("c", age=30)
        assert folder.batch() == ["c"]
        assert folder.batch(anew=True) == []
        folder.add("d", age=5)
        assert folder.batch(anew=True) == ["d"]

    def test_between_two_looks_at_the_folder_each_file_comes_once_as_well(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path, interval=Duration.of_hours(1))
        for name in "abc":
            folder.add(name, age=200 - ord(name))
        found = [folder.batch(records=1, look=False) for _ in range(4)]
        assert found == [["a"], ["b"], ["c"], []]
        folder.add("d")
        assert folder.batch(look=False) == []
        assert folder.batch() == ["d"]

    def test_it_never_ends_and_takes_a_folder_that_is_still_to_come(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path / "later")
        assert folder.batch() == []
        assert not folder.planner.ended(folder.position)
        folder.add("a")
        assert folder.batch() == ["a"]

    def test_files_of_a_batch_that_is_made_smaller_come_with_the_next_one(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path)
        for name in "abc":
            folder.add(name, age=100 - ord(name))
        folder.batch()
        for name in "def":
            folder.add(name, age=200 - ord(name))
        # The engine asks again for less when a batch would be too large.
        folder.planner.latest(folder.position, 10**6)
        assert folder.batch(records=1) == ["d"]
        assert folder.batch() == ["e", "f"]

    def test_a_file_that_grew_after_it_was_read_is_named(self, tmp_path: Path) -> None:
        folder = _Folder(tmp_path)
        folder.add("a")
        assert folder.batch() == ["a"]
        with (tmp_path / "a").open("a") as file:
            file.write("more\n")
        with pytest.raises(InputError, match=r"/a was changed .*it was read before and has another size now"):
            folder.batch(anew=True)

    def test_a_file_that_vanishes_before_it_was_read_is_left_out(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = _Folder(tmp_path)
        folder.add("a", age=2)
        folder.add("b", age=1)
        assert folder.batch(records=1) == ["a"]
        (tmp_path / "b").unlink()
        assert folder.batch() == []
        assert "b was taken away before it was read" in caplog.text

    def test_with_a_retention_the_oldest_are_forgotten(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(known_files, "_CHUNK_ENTRIES", 4)
        folder = _Folder(tmp_path, retention=Duration.of_seconds(5))
        for number in range(10):
            folder.add(f"{number:02}", age=10 - number)
        assert len(folder.batch()) == 10
        assert folder.batch(anew=True) == []
        assert len(folder.position["known"]["seen"]) == 3
        folder.add("late", age=5)
        folder.add("too late", age=9)
        assert folder.batch(anew=True) == ["late"]
        # All of the first four are too old.
        assert len(folder.position["known"]["seen"]) == 2
        assert folder.batch(anew=True) == []
        folder.add("new", age=-4)
        assert folder.batch() == ["new"]
        assert len(folder.position["known"]["seen"]) == 1


class _Folder:
    """A monitored folder: a batch reads what is there."""

    def __init__(self, path: Path, retention: Duration | None = None, interval: Duration | None = None) -> None:
        self._path, self._retention, self._interval = path, retention, interval or Duration.of_millis(1)
        self._now = time.time()
        self.position: Any = None
        self._begin()

    def _begin(self) -> None:
        more = {} if self._retention is None else {"retention": self._retention}
        made = source(LINES, self._path, monitor=self._interval, **more)
        self.planner, self._reader = made.create_enumerator(), made.create_reader()

    def add(self, name: str, age: float = 0) -> None:
        self._path.mkdir(exist_ok=True)
        aside = self._path / f".{name}"
        aside.write_text(f"{name}\n")
        os.utime(aside, (self._now - age, self._now - age))
        aside.rename(self._path / name)

    def batch(self, records: int = 10**6, anew: bool = False, look: bool = True) -> list[str]:
        if anew:
            self._begin()
        if look:
            # As if its time had come, whatever the clock says.
            self.planner._files._asked = None  # type: ignore[attr-defined]
        end = json.loads(json.dumps(self.planner.latest(self.position, records)))
        found = read(self._reader, self.planner.plan(self.position, end, 1))
        self.position = end
        return found


def _old(path: Path, text: str) -> None:
    """A file that was there before whatever is written now."""
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))


class TestErrors:
    def test_a_line_that_is_no_record_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("number\n" + "12\n" * 20 + "twelve\n12\n")
        with pytest.raises(InputError, match=r"/a, line 22: this is no number. The line is b'twelve\\n'"):
            all_of(Numbers(), tmp_path, batch=1)

    def test_text_of_another_character_set(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"fine\n\xe9t\xe9\n")
        with pytest.raises(InputError, match=r"/a, line 2: byte 0xe9 .* StreamFormat.text_line_format\(..., errors="):
            all_of(LINES, tmp_path)
        assert all_of(StreamFormat.text_line_format("latin-1"), tmp_path) == ["fine", "été"]
        with pytest.raises(ProgramError, match=r"text_line_format.*no character set 'klingon'"):
            StreamFormat.text_line_format("klingon")

    def test_a_damaged_file(self, tmp_path: Path) -> None:
        (tmp_path / "a.gz").write_bytes(gzip.compress(b"abcd" * 1000)[:-20])
        with pytest.raises(InputError, match=r"The file .*/a.gz cannot be read as gzip"):
            all_of(Words(), tmp_path)
