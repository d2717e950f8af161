"""Runs the examples in this process, on the engine without Spark, and reads what they print."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path


def without_subtask(lines: list[str]) -> list[str]:
    """Which subtask prints a word depends on the number of cores."""
    return [re.sub(r"^\d+> ", "", line) for line in lines]


def of_word(lines: list[str], word: str) -> list[str]:
    return [line for line in without_subtask(lines) if line.startswith(f"({word},")]


def test_batch_prints_each_word_once(run) -> None:
    assert sorted(without_subtask(run("word_count_batch.py"))) == [
        "(flink,1)",
        "(hello,3)",
        "(java,1)",
        "(world,1)",
    ]


def test_a_bounded_stream_prints_every_update_in_order(run) -> None:
    lines = run("word_count_bounded.py")
    assert of_word(lines, "hello") == ["(hello,1)", "(hello,2)", "(hello,3)"]
    assert sorted(set(without_subtask(lines)) - set(of_word(lines, "hello"))) == [
        "(flink,1)",
        "(java,1)",
        "(world,1)",
    ]


def test_both_take_another_file(run, tmp_path: Path) -> None:
    text = tmp_path / "other.txt"
    text.write_text("a b a\n\nb a\n")
    assert sorted(without_subtask(run("word_count_batch.py", "--input", str(text)))) == ["(a,3)", "(b,2)"]
    assert of_word(run("word_count_bounded.py", "--input", str(text)), "b") == ["(b,1)", "(b,2)"]


def test_the_socket_stream_counts_until_the_server_closes(run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"hello world\nhello ")
                connection.sendall(b"flink\nhello java\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = str(server.getsockname()[1])
        lines = run("word_count_socket.py", "--host", "127.0.0.1", "--port", port, "--until-closed")
        thread.join(5)
    assert of_word(lines, "hello") == ["(hello,1)", "(hello,2)", "(hello,3)"]
    assert len(lines) == 6


def test_the_enrichment_asks_for_many_orders_at_once(run) -> None:
    lines = run("async_enrichment.py", "--orders", "400")
    counted = {city: int(number) for city, number, _ in (line.split() for line in lines[:-1])}
    assert sum(counted.values()) == 400
    assert counted["unknown"] == 2
    assert counted["Athens"] == 80
    assert float(re.search(r"took ([\d.]+) s", lines[-1]).group(1)) < 400 * 0.05 / 2


def test_the_demo_counts_every_click_and_sums_up(run) -> None:
    lines = run("demo_clicks.py", "--rate", "500", "--seconds", "3", "--users", "7")
    text = "\n".join(lines)
    assert re.search(r"clicks counted +1,500$", text, re.MULTILINE)
    spans = [
        int(found.replace(",", "")) for found in re.findall(r"(\d[\d,]*) clicks of +[1-7] users, most: user-00", text)
    ]
    assert sum(spans) == 1_500
    assert 1 <= len(spans) <= 3
    assert re.search(r"results +\d+$", text, re.MULTILINE)
    assert re.search(r"job 'clicks' finished after .* s: 1,500 records, .* records/s, \d+ batches", lines[-1])
