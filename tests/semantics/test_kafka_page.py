"""The page on Kafka is a program."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from kafkakit import Broker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kafka.md"


@pytest.mark.timeout(300)
def test_the_page_is_a_program(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    clicks, counts = broker.topic(["ada", "bob", "ada"]), broker.topic()
    program = tmp_path / "page.py"
    program.write_text(code.replace('"clicks"', f'"{clicks}"').replace('set_topic("counts")', f'set_topic("{counts}")'))
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    monkeypatch.setenv("FIRESTEEL_KAFKA_SERVERS", broker.servers)
    runpy.run_path(str(program), run_name="__main__")
    found = sorted((message.key(), message.value()) for message in broker.messages(counts))
    assert found == [(b"ada", b"1"), (b"ada", b"2"), (b"bob", b"1")]
