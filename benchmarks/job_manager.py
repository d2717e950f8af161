"""How the job manager stands up to its clients: ``python -m benchmarks.job_manager``.

Fifty jobs are registered, two of which run. Ten clients ask for ``/jobs/overview``: first ten times a second each, then
as fast as they get answers, 10,000 times in all. Then a job with a graph of 200 operators is opened in Chromium.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

import psutil

from firesteel.cluster.client import ClusterClient
from firesteel.cluster.folders import ClusterFolder
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.settings import ClusterSettings
from firesteel.cluster.sqlite_registry import SqliteRegistry
from firesteel.cluster.starting import start_in_background
from firesteel.cluster.tokens import read_token

JOBS, CLIENTS, REQUESTS, OPERATORS = 50, 10, 10_000, 200

PROGRAM = """\
import sys
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource

count, operators = int(sys.argv[1]), int(sys.argv[2])
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
stream = env.from_source(DataGeneratorSource(lambda n: n, count, 20), WatermarkStrategy.no_watermarks(), "numbers")
for number in range(operators):
    stream = stream.map(lambda n: n).name(f"step {number}")
    if operators > 10:
        stream = stream.disable_chaining()
stream.filter(lambda n: False).print()
env.execute(f"{operators} operators")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the job manager under load.")
    parser.add_argument("--no-browser", action="store_true", help="leave out the page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fs-") as place:
        folder = Path(place) / "c"
        running = start_in_background(ClusterSettings(folder=folder, port=0, slots=4, warm_drivers=0))
        try:
            measure(folder, running.address, running.pid, not options.no_browser)
        finally:
            for row in SqliteRegistry(ClusterFolder(folder).registry).jobs():
                if row.pid:
                    end_session(Process(row.pid, row.pid_started))
            end_session(Process.of(running.pid))


def measure(folder: Path, address: str, pid: int, with_browser: bool) -> None:
    client = ClusterClient(address, read_token(folder / "token"))
    program = folder.parent / "load.py"
    program.write_text(PROGRAM)
    settings = {"firesteel.master": "memory"}
    print(f"{JOBS} jobs, two of which run; {CLIENTS} clients", flush=True)
    first = client.submit(str(program), ["1", "3"], settings)
    client.job(first).wait()
    # The others are copies of its row: fifty drivers would measure the machine.
    registry = SqliteRegistry(ClusterFolder(folder).registry)
    row = registry.job(first)
    assert row is not None
    end_session(Process.of(pid))
    registry.claim()
    for number in range(JOBS - 3):
        registry.add_job(type(row)(**{**vars(row), "id": f"{number:032x}", "name": f"job {number}"}))
    registry.close()
    running = start_in_background(ClusterSettings(folder=folder, port=0, slots=4, warm_drivers=0))
    client = ClusterClient(running.address, read_token(folder / "token"))
    for _ in range(2):
        client.submit(str(program), ["1000000", "3"], settings)
    assert len(client.get("/jobs/overview")["jobs"]) == JOBS
    process = psutil.Process(running.pid)
    try:
        report("ten times a second each", load(running.address, client, 1_000, 0.1))
        before = process.memory_info().rss
        report("as fast as they can", load(running.address, client, REQUESTS, 0.0))
        after = process.memory_info().rss
        print(f"memory before and after {REQUESTS:,} requests: {before / 1e6:.1f} and {after / 1e6:.1f} MB", flush=True)
        if with_browser:
            browse(running.address, client, str(program), settings)
    finally:
        for known in client.jobs():
            if known["state"] not in ("FINISHED", "CANCELED", "FAILED"):
                client.job(known["id"]).cancel()
        end_session(Process.of(running.pid))


def load(address: str, client: ClusterClient, requests: int, pause: float) -> list[float]:
    """Milliseconds of each request."""
    parts = urllib.parse.urlsplit(address)
    taken: list[float] = []
    headers = {"Authorization": f"Bearer {client._token}"}

    def ask() -> None:
        line = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
        for _ in range(requests // CLIENTS):
            began = time.perf_counter()
            line.request("GET", "/jobs/overview", headers=headers)
            answer = line.getresponse()
            content = answer.read()
            taken.append((time.perf_counter() - began) * 1000)
            assert answer.status == 200, content
            time.sleep(pause)
        assert len(json.loads(content)["jobs"]) == JOBS
        line.close()

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == requests
    return taken


def report(name: str, taken: list[float]) -> None:
    cuts = statistics.quantiles(taken, n=100)
    print(f"{name}: p50 {cuts[49]:.1f}, p99 {cuts[98]:.1f}, max {max(taken):.1f} ms", flush=True)


def browse(address: str, client: ClusterClient, program: str, settings: dict[str, str]) -> None:
    """Opens the graph of 200 operators, and uses it."""
    import shutil

    from playwright.sync_api import sync_playwright

    job = client.submit(program, ["1000000", str(OPERATORS)], settings)
    while client.job(job).known["state"] != "RUNNING":
        time.sleep(0.2)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 820})
        cookie: Any = {"name": "firesteel-token", "value": client._token, "url": address}
        context.add_cookies([cookie])
        page = context.new_page()
        began = time.perf_counter()
        page.goto(f"{address}/#/jobs/{job}")
        page.wait_for_function("() => document.querySelectorAll('svg g.node').length > 100")
        drawn = time.perf_counter() - began
        # How long the page is not there for its user, in ten seconds of polling.
        longest = page.evaluate(
            """async () => { let worst = 0, last = performance.now(); const end = last + 10000;
            while (last < end) { await new Promise((done) => setTimeout(done, 0));
            const now = performance.now(); worst = Math.max(worst, now - last); last = now; } return worst; }"""
        )
        nodes = page.evaluate("() => document.querySelectorAll('svg g.node').length")
        print(
            f"graph of {nodes} operators: drawn after {drawn:.1f} s, longest pause after that {longest:.0f} ms",
            flush=True,
        )
        browser.close()


if __name__ == "__main__":
    main()
