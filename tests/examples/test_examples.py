"""Runs the examples in this process, on the engine without Spark and one on Spark, and reads what they print."""

from __future__ import annotations

import asyncio
import re
import runpy
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


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


@pytest.mark.parametrize("master", ["memory", "local"])
def test_orders_of_csv_are_summed_up(run, tmp_path: Path, master: str) -> None:
    import fastavro

    lines = run("csv_orders.py", "--output", str(tmp_path), master=master)
    assert sorted(lines) == ['{"customer": "Ada", "spent": "14.75"}', '{"customer": "Blaise", "spent": "5.00"}']
    (file,) = [path for path in (tmp_path / "orders").iterdir() if not path.name.startswith(("_", "."))]
    with file.open("rb") as opened:
        assert [record["item"] for record in fastavro.reader(opened)] == ["pen, blue", "paper", 'a note:\n"to do"']


@pytest.fixture
def patient_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """For event loops: what holds the machine up for long counts as a moment, so that nothing times out by it."""

    def patient(loop: Any) -> float:
        now = time.monotonic()
        before, shown = vars(loop).get("_looked", (now, now))
        vars(loop)["_looked"] = now, shown + min(now - before, 0.2)
        return float(vars(loop)["_looked"][1])

    monkeypatch.setattr(asyncio.BaseEventLoop, "time", patient)


@pytest.mark.usefixtures("patient_clock")
def test_the_enrichment_asks_for_many_orders_at_once(run, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep, under_way, most = asyncio.sleep, 0, 0

    async def counted(seconds: float) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            await sleep(seconds)
        finally:
            under_way -= 1

    monkeypatch.setattr(asyncio, "sleep", counted)
    lines = run("async_enrichment.py", "--orders", "400")
    counted = {city: int(number) for city, number, _ in (line.split() for line in lines[:-1])}
    assert sum(counted.values()) == 400
    assert counted["unknown"] == 2
    assert counted["Athens"] == 80
    assert re.search(r"took [\d.]+ s", lines[-1])
    assert most > 50


def test_the_start_of_a_window_follows_a_formula(run) -> None:
    lines = run("window_start.py")
    assert [line.split(maxsplit=2) for line in lines[1:7]] == [
        ["199", "0", "[195, 210)"],
        ["195", "0", "[195, 210)"],
        ["210", "0", "[210, 225)"],
        ["199", "5", "[185, 200)"],
        ["199", "-5", "[190, 205)"],
        ["-1", "0", "[-15, 0)"],
    ]
    assert lines[7:] == [
        "days in London (UTC), no offset:",
        "  01 Jan 00:00 to 02 Jan 00:00: 150.00",
        "days in Beijing (UTC+8), offset -8 hours, shown in UTC:",
        "  01 Jan 16:00 to 02 Jan 16:00: 120.00",
        "  31 Dec 16:00 to 01 Jan 16:00:  30.00",
    ]


def test_a_delay_saves_readings_out_of_order(run) -> None:
    assert run("out_of_order_readings.py") == [
        "roof  0 s to 10 s: 22.0 degrees of 4 readings",
        "roof 10 s to 20 s: 32.0 degrees of 3 readings",
        "roof 20 s to 30 s: 41.0 degrees of 2 readings",
    ]
    assert run("out_of_order_readings.py", "--delay", "0") == [
        "roof  0 s to 10 s: 20.5 degrees of 2 readings",
        "roof 10 s to 20 s: 30.5 degrees of 2 readings",
        "roof 20 s to 30 s: 41.0 degrees of 2 readings",
    ]


def test_late_parcels_correct_a_count_or_go_aside(run) -> None:
    assert run("late_data.py") == [
        "north minutes  0 to 10: 2 parcels ['p1', 'p2']",
        "north minutes  0 to 10: 3 parcels ['p1', 'p2', 'p4']",
        "north minutes 10 to 20: 1 parcels ['p3']",
        "north minutes  0 to 10: 4 parcels ['p1', 'p2', 'p4', 'p6']",
        "north minutes 20 to 30: 1 parcels ['p5']",
        "north minutes 20 to 30: 2 parcels ['p5', 'p9']",
        "too late: ('north', 5, 'p8')",
        "north minutes 30 to 40: 1 parcels ['p7']",
    ]


def test_percentiles_are_at_most_a_tenth_too_high(run) -> None:
    lines = run("percentiles.py")
    made = runpy.run_path(str(EXAMPLES / "percentiles.py"))["requests"](20_000)
    assert len(lines) == 8
    for line in lines:
        hour, service, *found = re.fullmatch(r" ?(\d+):00 (\w+) +p75 +([\d.]+) ms, p99 +([\d.]+) ms", line).groups()
        values = sorted(v for name, moment, v in made if name == service and moment // 3_600_000 == int(hour))
        for percentile, shown in zip((75, 99), map(float, found), strict=True):
            exact = values[-(-len(values) * percentile // 100) - 1]
            assert exact - 0.1 <= shown <= exact * 1.1 + 0.1
    slow = [float(re.search(r"p99 +([\d.]+)", line).group(1)) for line in lines if "search" in line]
    assert max(slow[:2]) < 200 < min(slow[2:])


def test_the_top_pages_of_each_window(run) -> None:
    assert run("top_urls.py") == [
        "until minute  5: /home 208, /shop 146, /help 72",
        "until minute 10: /home 441, /shop 258, /help 146",
        "until minute 15: /home 369, /news 247, /shop 196",
        "until minute 20: /news 398, /home 261, /shop 165",
        "until minute 25: /news 194, /home 125, /shop 81",
    ]
    assert all(line.count("/") == 1 for line in run("top_urls.py", "--top", "1"))


def test_a_late_click_joins_two_sessions(run) -> None:
    assert run("session_analysis.py") == [
        "ada from minute   0, 62 minutes, 5 clicks, bought at /paid",
        "ada from minute 200,  0 minutes, 1 clicks, left at /home",
        "bob from minute   3,  0 minutes, 1 clicks, left at /home",
        "bob from minute  40,  4 minutes, 2 clicks, left at /shop",
    ]


def test_the_demo_counts_every_click_and_sums_up(run) -> None:
    lines = run("demo_clicks.py", "--rate", "500", "--seconds", "3", "--users", "7")
    text = "\n".join(lines)
    assert re.search(r"clicks counted +1,500$", text, re.MULTILINE)
    assert re.search(r"^Watch the job at http://127\.0\.0\.1:\d+ while it runs", text, re.MULTILINE)
    spans = [
        int(found.replace(",", "")) for found in re.findall(r"(\d[\d,]*) clicks of +[1-7] users, most: user-00", text)
    ]
    assert sum(spans) == 1_500
    assert 1 <= len(spans) <= 3
    assert re.search(r"results +\d+$", text, re.MULTILINE)
    assert re.search(r"job 'clicks' finished after .* s: 1,500 records, .* records/s, \d+ batches", lines[-1])


def test_every_count_is_in_the_files_once(run) -> None:
    assert run("sink_exactly_once.py") == [
        "./home [1, 2, 3, 4, 5, 6, 7, 8]",
        "./cart [1, 2, 3, 4]",
        "failed once: True",
    ]
