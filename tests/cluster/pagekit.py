"""The page in a real browser: a job manager with jobs in memory behind it, Debian's Chromium before it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from clusterkit import running_cluster
from sparkkit import eventually

from firesteel.cluster.rest.app import build
from firesteel.cluster.rest.calls import Cluster

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "<script>document.title='broken'</script>"
"""The name of a job, and a line of its log."""

PROGRAM = '''\
"""Clicks per user. Arguments: how the job behaves, and its name."""
import sys
import time
import zlib

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows

behaviour, name = sys.argv[1:]
print(f"INFO {name} begins", flush=True)
print("WARNING nothing to worry about", flush=True)


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class CountPerUser(KeyedProcessFunction):
    def open(self, runtime_context):
        self.clicks = runtime_context.get_state(ValueStateDescriptor("clicks", Types.LONG()))

    def process_element(self, value, ctx):
        clicks = (self.clicks.value() or 0) + 1
        self.clicks.update(clicks)
        if behaviour == "fails" and clicks == 3:
            raise ValueError(f"{value[0]} clicked too often")
        time.sleep(0.0004)
        yield value[0], clicks, value[2]


def click(number):
    chance = zlib.crc32(b"%d" % number)
    return f"user-{chance % 40:02}", chance % 1000, int(time.time() * 1000) - chance % 900


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.enable_checkpointing(1000)
times = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_assigner(ClickTime())
row = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
clicks = env.from_source(DataGeneratorSource(click, 10**9, 400), times, "clicks")
users = clicks.filter(lambda one: one[1] > 20).name("not too quick").key_by(lambda one: one[0], key_type=Types.STRING())
counted = users.process(CountPerUser(), output_type=row).name("count per user").uid("count")
counted.filter(lambda one: False).name("alarms").print().name("pager")
spans = TumblingEventTimeWindows.of(Duration.of_seconds(2))
windows = counted.key_by(lambda one: one[0][-1], key_type=Types.STRING()).window(spans)
sums = windows.reduce(lambda a, b: (a[0], a[1] + b[1], b[2])).name("clicks per 2 s")
sums.filter(lambda one: False).name("quiet").print().name("archive")
env.execute(name)
'''


def why_not() -> str | None:
    """Why there is no browser."""
    if chromium() is None:
        return "there is no chromium (Debian: apt-get install chromium)"
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return None


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Site:
    """A job manager that can be browsed."""

    def __init__(self, cluster: Cluster, address: str) -> None:
        self.cluster, self.address = cluster, address

    def submit(self, behaviour: str, name: str, **settings: str) -> str:
        program = self.cluster.programs.put("clicks.py", PROGRAM.encode())
        chosen = {"firesteel.master": "memory", "firesteel.batch.interval": "250 ms", **settings}
        return self.cluster.supervisor.submit(program, (behaviour, name), chosen).id

    def state(self, job: str) -> str:
        return self.cluster.supervisor.row(job).state

    def counts(self, job: str) -> bool:
        """Whether it runs and its tasks have reported."""
        managed = self.cluster.supervisor.managed(job)
        return managed is not None and managed.snapshot is not None and managed.snapshot.status.batches > 2

    def wait(self, job: str, *states: str) -> None:
        assert eventually(lambda: self.state(job) in states), self.state(job)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Site]:
    with running_cluster(folder, slots=8) as cluster:
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(build(cluster), log_config=None, lifespan="off", access_log=False))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield Site(cluster, f"http://127.0.0.1:{listening.getsockname()[1]}/")
        finally:
            server.should_exit = True
            thread.join(60)
            listening.close()


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield found
        finally:
            found.close()


def expect(what: Any) -> Any:
    """Playwright's assertions, which wait until they hold: a page is drawn when its data has come."""
    from playwright.sync_api import expect as of_playwright

    of_playwright.set_options(timeout=120_000)
    return of_playwright(what)


class Tab:
    """A page with a token, and all that went wrong in it."""

    def __init__(self, browser: Browser, site: Site, token: str | None, **options: Any) -> None:
        self.site = site
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 820}, "timezone_id": "Europe/Berlin", **options}
        )
        self.context.set_default_timeout(120_000)
        if token is not None:
            cookie = {"name": "firesteel-token", "value": token, "url": site.address, "httpOnly": True}
            self.context.add_cookies([{**cookie, "sameSite": "Strict"}])  # type: ignore[typeddict-item]
        self.page: Page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self._said(message.type, message.text))

    def _said(self, kind: str, text: str) -> None:
        # A refused request is told there, too; what it means is for the page to say.
        if kind == "error" and "status of 4" not in text:
            self.problems.append(text)

    def open(self, path: str = "") -> Page:
        self.page.goto(f"{self.site.address}#/{path}")
        return self.page

    def shot(self, name: str) -> None:
        """Keeps a picture, where FIRESTEEL_SCREENSHOTS names a folder for them."""
        folder = os.environ.get("FIRESTEEL_SCREENSHOTS")
        if folder:
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))
