"""File sources over formats of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest
from sourcekit import read_all

from firesteel.connectors.files import enumerator as enumerator_module
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
