"""Lines are read in blocks and decoded many at once: with the same lines in each range as one by one."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from firesteel.connectors import text_reading
from firesteel.connectors.text_positions import FileState
from firesteel.connectors.text_reading import FileSplit, LineReader, RangeReader
from firesteel.errors import InputError
from firesteel.filesystems import LOCAL

CONTENTS = {
    "short": b"a\n\nbc\r\n\r\n\n\rd\r\r\ne\n",
    "no end": b"one\ntwo\r",
    "empty lines": b"\n" * 40,
    "long": b"x" * 30 + b"\n" + b"y" * 13 + b"\n\n" + b"z" * 40,
    "umlauts": "äöü\nß\r\n\x0b\x1c\u2028 no ends of lines\n€".encode(),
}


def split_of(path: Path) -> FileSplit:
    info = LOCAL.info(str(path))
    assert info is not None
    return FileSplit(FileState(*info), None)


def one_by_one(content: bytes, low: int, high: int) -> list[tuple[int, bytes]]:
    """The lines that start in a range, each with its place."""
    lines = content.split(b"\n")
    whole = [line + b"\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]
    places = itertools.accumulate(map(len, whole), initial=0)
    return [(place, line) for place, line in zip(places, whole, strict=False) if low <= place < high]


@pytest.mark.parametrize("block", [1, 2, 7, 64])
@pytest.mark.parametrize("name", CONTENTS)
def test_each_range_has_the_lines_that_start_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, block: int
) -> None:
    monkeypatch.setattr(text_reading, "BLOCK_BYTES", block)
    monkeypatch.setattr(text_reading, "CHUNK_RECORDS", 3)
    path, content = tmp_path / "file", CONTENTS[name]
    path.write_bytes(content)
    split = split_of(path)
    for low, high in itertools.combinations(range(len(content) + 1), 2):
        found = []
        for first, lines in LineReader().read(split, low, high):
            assert len(lines) <= 3
            found += zip(itertools.accumulate(map(len, lines), initial=first), lines, strict=False)
        assert found == one_by_one(content, low, high), (low, high)


def test_what_is_added_later_is_no_part_of_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo")
    split = split_of(path)
    with path.open("ab") as file:
        file.write(b" and more\nthree\n")
    assert [lines for _, lines in LineReader().read(split, 0, 7)] == [[b"one\n", b"two"]]


@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("charset", ["UTF-8", "utf-8-sig", "latin-1", "windows-1252", "ascii", "iso-2022-jp", "gbk"])
def test_lines_together_are_the_same_text_as_one_by_one(tmp_path: Path, charset: str, errors: str) -> None:
    chosen, path = random.Random(7), tmp_path / "file"
    signs = b"ab\r\n\n\xc3\xa4\xe2\x82\xac\x81\x1b$B"
    refused = 0
    for _ in range(300):
        content = bytes(chosen.choices(signs, k=chosen.randrange(1, 12)))
        path.write_bytes(content)
        reader, split = RangeReader(charset, errors), split_of(path)
        alone = [line.removesuffix(b"\n").removesuffix(b"\r") for _, line in one_by_one(content, 0, len(content))]
        try:
            expected = [line.decode(charset, errors) for line in alone]
        except UnicodeDecodeError:
            refused += 1
            with pytest.raises(InputError, match="is not valid"):
                list(reader.read(split, 0, len(content)))
        else:
            found = [line for records in reader.read(split, 0, len(content)) for line in records.values]
            assert found == expected
    assert bool(refused) == (errors == "strict" and charset != "latin-1")
