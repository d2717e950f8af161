"""Where an operator under test sends its results: into lists."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from firesteel.datastream.output_tag import OutputTag
from firesteel.runtime.outputs import Output, Receiver
from firesteel.testing.steps import Record

__all__ = ["EverySideOutput", "RecordedOutputs", "Recorder"]


class Recorder:
    """One output, recorded.

    >>> recorder = Recorder()
    >>> recorder.take(["a", "b"], [1, 2])
    >>> recorder.watermark(0, 5)
    >>> recorder.records, recorder.watermarks
    ([Record(value='a', timestamp=1), Record(value='b', timestamp=2)], [5])
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.watermarks: list[int] = []

    def take(self, values: list[Any], timestamps: list[int] | None) -> None:
        self.records.extend(map(Record, values, repeat(None) if timestamps is None else timestamps))

    def watermark(self, origin: int, value: int) -> None:
        self.watermarks.append(value)

    def idle(self, origin: int, timeout: int) -> None:
        """Nobody waits for this channel anyway."""

    def clear(self) -> None:
        self.records.clear()
        self.watermarks.clear()


class EverySideOutput(dict[str, list[Receiver]]):
    """Side outputs by tag. In a job a tag that nobody reads is dropped; here every tag that appears is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.recorders: dict[str, Recorder] = {}

    def get(self, tag: str, default: Any = None) -> Any:
        if tag not in self:
            self.recorders[tag] = Recorder()
            self[tag] = [self.recorders[tag]]
        return self[tag]

    def records(self, tag: str) -> list[Record]:
        return self.recorders[tag].records if tag in self.recorders else []


class RecordedOutputs:
    """The outputs of an operator as lists."""

    def _record(self, out: Output) -> None:
        """Reads an operator's output from here on."""
        self._main, self._sides = Recorder(), EverySideOutput()
        self._committables: list[Any] = []
        out.main.append(self._main)
        out.side = self._sides

    def _to_driver(self, kind: str, node_id: int, payload: Any) -> None:
        if kind == "commit":
            self._committables += payload

    @property
    def output(self) -> list[Any]:
        """The values that came out of the main output so far."""
        return [record.value for record in self._main.records]

    @property
    def records(self) -> list[Record]:
        """What came out of the main output, with timestamps."""
        return list(self._main.records)

    @property
    def watermarks(self) -> list[int]:
        """The watermarks that were passed on."""
        return list(self._main.watermarks)

    def side_output(self, tag: OutputTag) -> list[Any]:
        """The values that were yielded with a tag."""
        return [record.value for record in self.side_records(tag)]

    def side_records(self, tag: OutputTag) -> list[Record]:
        """What was yielded with a tag, with timestamps."""
        return list(self._sides.records(tag.tag_id))

    @property
    def committables(self) -> list[Any]:
        """What the writer of a sink prepared for its committer, batch by batch."""
        return list(self._committables)

    def take_output(self) -> list[Any]:
        """The values of the main output, which then starts anew: what came out since the last call."""
        output = self.output
        self._main.records.clear()
        return output

    def clear_output(self) -> None:
        """Forgets all that came out so far."""
        for recorder in (self._main, *self._sides.recorders.values()):
            recorder.clear()
        self._committables.clear()
