"""Flink's own dashboard, unmodified, in a real browser against Firesteel's job manager.

Its files are taken out of Flink's JAR and given to the browser in the place of our page's; all else that it asks for
goes to the job manager.
"""

from __future__ import annotations

import mimetypes
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from flink_tools import jars
from flink_tools import why_not as no_flink
from pagekit import Site, Tab, browser, expect, served
from pagekit import why_not as no_browser
from sparkkit import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Response, Route


@pytest.fixture(scope="module", autouse=True)
def needed() -> None:
    missing = no_browser()
    if missing is not None and os.environ.get("CI") == "true":
        pytest.fail(f"CI must test in a browser: {missing}")
    if missing or no_flink():
        pytest.skip(missing or no_flink())


@pytest.fixture(scope="module")
def files(needed: None) -> dict[str, bytes]:
    """What Flink's server gives out, by path."""
    (dist,) = [jar for jar in jars() if jar.name.startswith("flink-dist")]
    with zipfile.ZipFile(dist) as archive:
        names = [name for name in archive.namelist() if name.startswith("web/") and not name.endswith("/")]
        return {name.removeprefix("web"): archive.read(name) for name in names}


@pytest.fixture(scope="module")
def site(needed: None, tmp_path_factory: pytest.TempPathFactory, short: Path) -> Iterator[Site]:
    patch = pytest.MonkeyPatch()
    patch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
    with served(tmp_path_factory.mktemp("site") / "c") as found:
        yield found
    patch.undo()


@pytest.fixture(scope="module")
def chromium(needed: None) -> Iterator[Browser]:
    with browser() as found:
        yield found


class Dashboard(Tab):
    """The dashboard, and every request of it that did not go well."""

    def __init__(self, browser: Browser, site: Site, files: dict[str, bytes]) -> None:
        super().__init__(browser, site, site.cluster.tokens.full)
        self._files = files
        self.asked: set[str] = set()
        self.refused: list[str] = []
        self.context.route("**/*", self._serve)
        self.page.on("response", self._answered)

    def _serve(self, route: Route) -> None:
        path = urlsplit(route.request.url).path
        content = self._files.get("/index.html" if path == "/" else path)
        if content is None:
            route.continue_()
            return
        kind = mimetypes.guess_type(path)[0] or ("text/html" if path == "/" else "application/octet-stream")
        route.fulfill(body=content, content_type=kind)

    def _answered(self, response: Response) -> None:
        path = urlsplit(response.url).path
        self.asked.add(re.sub("[0-9a-f]{32}", ":id", path))
        if response.status >= 400:
            self.refused.append(f"{response.status} {path}")


def test_overview_and_job_load_without_failing_requests(site: Site, chromium: Browser, files: dict[str, bytes]) -> None:
    job = site.submit("works", "clicks of users")
    site.wait(job, "RUNNING")
    assert eventually(lambda: site.counts(job))
    tab = Dashboard(chromium, site, files)
    page = tab.open("overview")
    expect(page.get_by_text("clicks of users").first).to_be_visible()
    expect(page.get_by_text("Available Task Slots").first).to_be_visible()
    pages = {
        "overview": f"/jobs/{job}$",
        "exceptions": "/exceptions",
        "timeline": "",
        "checkpoints": f"/jobs/{job}/checkpoints$",
        "configuration": f"/jobs/{job}/config$",
    }
    for name, answer in pages.items():
        if answer:
            with page.expect_response(re.compile(answer)):
                tab.open(f"job/running/{job}/{name}")
        else:
            tab.open(f"job/running/{job}/{name}")
        expect(page.get_by_text("clicks of users").first).to_be_visible()
        if name == "overview":
            expect(page.get_by_text("count per user").first).to_be_visible()
    for place, text in (
        ("task-manager", "Path, ID"),
        ("job-manager/config", "firesteel.cluster.slots"),
        ("job/running", "clicks of users"),
    ):
        expect(tab.open(place).get_by_text(text).first).to_be_visible()
    asked = {"/config", "/jobs/overview", "/jobs/:id", "/jobs/:id/checkpoints", "/taskmanagers", "/jobmanager/config"}
    assert asked <= tab.asked
    assert tab.refused == []
    assert tab.problems == []
    tab.context.close()
