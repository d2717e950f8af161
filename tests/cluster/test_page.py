"""The page in a real Chromium, with real jobs behind it: each page, each button, a job that fails, a wrong token, a job
whose name is markup.

``FIRESTEEL_SCREENSHOTS=docs/images pytest tests/cluster/test_page.py`` makes the pictures of the documentation anew.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pagekit import HOSTILE, PROGRAM, Site, Tab, browser, expect, served, why_not
from sparkkit import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.timeout(600)

Opened = Callable[..., Tab]


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    missing = why_not()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must test the page in a browser: {missing}")
        pytest.skip(missing)
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def site(chrome: Browser, short: Path) -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIRESTEEL_RUNTIME_DIR", str(short))
        with served(short / "cluster") as found:
            yield found


@pytest.fixture(scope="module")
def jobs(site: Site) -> dict[str, str]:
    """Jobs that run and one that has failed, by what they are for."""
    restarts = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "restart-strategy.fixed-delay.delay": "100 ms",
    }
    found = {
        "good": site.submit("runs", "clicks per user"),
        "hostile": site.submit("runs", HOSTILE),
        "stopped": site.submit("runs", "to be stopped"),
        "cancelled": site.submit("runs", "to be cancelled"),
        "failed": site.submit("fails", "broken parser", **restarts),
    }
    site.wait(found["failed"], "FAILED")
    for name in ("good", "hostile", "stopped", "cancelled"):
        assert eventually(lambda name=name: site.counts(found[name]))
    return found


@pytest.fixture
def opened(chrome: Browser, site: Site, jobs: dict[str, str]) -> Iterator[Opened]:
    """Opens tabs; at the end nothing may have gone wrong in any of them."""
    tabs: list[Tab] = []

    def one(token: str | None = "full", **options: Any) -> Tab:
        tabs.append(Tab(chrome, site, site.cluster.tokens.full if token == "full" else token, **options))
        return tabs[-1]

    yield one
    problems = [problem for tab in tabs for problem in tab.problems]
    for tab in tabs:
        tab.context.close()
    assert problems == []


def test_all_jobs(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.open()
    running = page.locator("section.panel", has_text="Running jobs")
    row = running.locator("tr", has_text="clicks per user")
    assert row.locator(".pill").inner_text() == "Running"
    page.wait_for_function("() => /[0-9]+.*\\/s/.test(document.querySelector('tbody tr').innerText)")
    expect(row).to_contain_text(re.compile(r"\d\s*/s"))
    ended = page.locator("section.panel", has_text="Jobs that ended").locator("tr", has_text="broken parser")
    assert re.fullmatch(r"ValueError: user-\d\d clicked too often", ended.locator("td.error").inner_text())
    page.keyboard.press("/")
    page.keyboard.type("parser")
    page.get_by_text("No running job fits the filter").wait_for()
    page.get_by_label("Filter jobs").fill("")
    row.get_by_role("link").wait_for()
    page.wait_for_function("() => document.querySelector('svg.spark')")
    tab.shot("page-jobs")
    row.get_by_role("link").click()
    page.get_by_role("heading", name="clicks per user").wait_for()


def test_graph_with_live_numbers(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.open(f"jobs/{jobs['good']}")
    expect(page.locator(".graph .node")).to_have_count(8)
    node = page.locator('[data-operator="count per user"]')
    expect(node).to_contain_text("records/s")
    before = node.text_content()
    assert eventually(lambda: node.text_content() != before), "the numbers live"
    page.locator("[data-diagnosis]").wait_for()
    node.click()
    side = page.locator("section.panel", has=page.get_by_role("heading", name="count per user"))
    expect(side).to_contain_text("Records in")
    tab.shot("page-graph")
    # With keys, too.
    side.get_by_label("Close").click()
    page.locator('[data-operator="alarms"]').focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="alarms").wait_for()


def test_tabs_of_a_job(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.open(f"jobs/{jobs['good']}/subtasks")
    page.get_by_text("In, per second").first.wait_for()
    expect(page.locator("section.panel", has_text="count per user").locator("tbody tr")).to_have_count(2)
    page.keyboard.press("3")
    page.get_by_text("Duration and its parts").wait_for()
    page.locator(".chart canvas").first.wait_for()
    first = int(page.locator("tbody tr td").first.inner_text().replace(",", ""))
    assert eventually(lambda: int(page.locator("tbody tr td").first.inner_text().replace(",", "")) > first)
    tab.shot("page-batches")
    page.keyboard.press("4")
    page.locator("tbody .pill", has_text="completed").first.wait_for()
    page.keyboard.press("5")
    page.get_by_role("heading", name="Watermarks").wait_for()
    expect(page.locator("main")).to_contain_text("behind the clock")
    page.keyboard.press("6")
    page.get_by_text("Nothing has failed").wait_for()
    page.keyboard.press("9")
    page.locator("tbody tr", has_text="driver").wait_for()
    page.keyboard.press("0")
    page.get_by_label("Filter settings").fill("batch.interval")
    page.locator("tbody tr", has_text="250 ms").wait_for()


def test_exceptions_by_attempt(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.open(f"jobs/{jobs['failed']}/exceptions")
    page.get_by_role("heading", name="Attempt 1").wait_for()
    page.get_by_role("heading", name="Attempt 0").wait_for()
    shown = page.locator("[data-failure]").first
    expect(shown.locator("pre.line")).to_contain_text('raise ValueError(f"{value[0]} clicked too often")')
    expect(shown).to_contain_text("clicks.py")
    expect(shown).to_contain_text("count per user")
    expect(page.locator("[data-diagnosis]")).to_have_attribute("data-diagnosis", "failed")
    # A job that has ended has no buttons.
    assert page.get_by_role("button", name="Cancel").count() == 0


def test_logs_with_search(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.open(f"jobs/{jobs['hostile']}/logs")
    page.locator(".log .WARNING", has_text="nothing to worry about").wait_for()
    page.get_by_label("Search the log").fill("WORRY")
    page.locator(".log mark", has_text="worry").wait_for()
    expect(page.locator(".log div", has_text="begins")).to_have_count(0)
    page.get_by_label("Search the log").fill("")
    page.locator(".log div", has_text="begins").wait_for()
    # What is written now appears by itself.
    log = tab.site.cluster.folder.job(jobs["hostile"]).log(0)
    with log.open("a") as file:
        file.write(f"ERROR {HOSTILE}\n")
    page.locator(".log .ERROR", has_text=HOSTILE).wait_for()
    assert page.title() == "Firesteel"


def test_markup_in_names_is_text(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.open()
    page.get_by_role("link", name=HOSTILE).wait_for()
    for path in ("", "/configuration", "/processes"):
        tab.open(f"jobs/{jobs['hostile']}{path}")
        assert page.get_by_role("heading", name=HOSTILE).inner_text() == HOSTILE
    assert page.title() == "Firesteel"
    assert page.evaluate("() => document.querySelectorAll('script').length") == 2


def test_inline_scripts_do_not_run(opened: Opened) -> None:
    tab = opened()
    page = tab.open()
    page.get_by_text("Running jobs").wait_for()
    page.evaluate(
        """() => { const one = document.createElement('script'); one.textContent = "document.title = 'broken'";
                   document.body.append(one);
                   const two = document.createElement('div'); two.innerHTML = '<img src=x onerror="document.title=1">';
                   document.body.append(two); }"""
    )
    assert eventually(lambda: len(tab.problems) >= 2), "the browser says what it refused"
    assert all("Content Security Policy" in one or "404" in one for one in tab.problems)
    assert page.title() == "Firesteel"
    tab.problems.clear()


def test_state_as_a_table(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.open(f"jobs/{jobs['good']}/state")
    page.get_by_role("button", name="Read the state").click()
    states = page.locator("section.panel", has=page.get_by_role("heading", name="States"))
    states.locator("tr", has_text="count per user").click()
    page.get_by_label("Filter by key").fill("r-07")
    page.get_by_text("1 to 1 of 1 (40 without the filter)").wait_for()
    rows = page.locator("section.panel").nth(1).locator("tbody tr")
    expect(rows.locator("td").first).to_have_text("user-07")
    page.get_by_role("button", name="Read again").wait_for()


def test_savepoint_stop_and_cancel(opened: Opened, site: Site, jobs: dict[str, str], tmp_path: Path) -> None:
    stopped, cancelled = jobs["stopped"], jobs["cancelled"]
    tab = opened()
    page = tab.open(f"jobs/{jobs['good']}")
    page.get_by_role("button", name="Savepoint").click()
    page.get_by_label("Folder for the savepoint").fill(str(tmp_path))
    page.get_by_role("button", name="Take it").click()
    told = page.get_by_role("status").get_by_text("Savepoint taken: ").inner_text()
    assert Path(told.removeprefix("Savepoint taken: ")).parent == tmp_path

    tab.open(f"jobs/{stopped}")
    page.get_by_role("button", name="Stop").click()
    page.get_by_label("Drain").check()
    page.get_by_role("button", name="Stop the job").click()
    page.get_by_role("status").get_by_text("The job has stopped. Savepoint: ").wait_for()
    site.wait(stopped, "FINISHED")

    tab.open(f"jobs/{cancelled}")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Do nothing").click()
    assert site.state(cancelled) == "RUNNING"
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the job").click()
    page.locator(".pill.CANCELED").first.wait_for()
    assert site.state(cancelled) == "CANCELED"
    # It can still be looked at.
    page.locator(".graph .node").first.wait_for()
    page.keyboard.press("3")
    page.get_by_text("Duration and its parts").wait_for()


def test_submit_a_program(opened: Opened, site: Site, tmp_path: Path) -> None:
    tab = opened()
    page = tab.open("submit")
    page.get_by_label("Program", exact=True).set_input_files(
        {"name": "shop.py", "mimeType": "text/x-python", "buffer": PROGRAM.encode() + b"# another one\n"}
    )
    page.get_by_role("heading", name="shop.py").wait_for()
    page.get_by_label("Arguments").fill("runs 'from the page'")
    page.get_by_label("Settings, one on each line").fill("firesteel.master memory")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_role("alert").get_by_text("A setting is written as key: value").wait_for()
    page.get_by_label("Settings, one on each line").fill(
        "firesteel.master: memory\n# a comment\nfiresteel.batch.interval=250 ms"
    )
    page.get_by_role("button", name="Show the plan").click()
    page.locator(".graph .node").first.wait_for()
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("heading", name="from the page").wait_for()
    job = page.url.rpartition("/")[2]
    site.wait(job, "RUNNING")
    site.cluster.supervisor.cancel(job)
    site.wait(job, "CANCELED")
    tab.open("submit")
    page.locator("tr", has_text="shop.py").get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove it").click()
    page.get_by_role("status").get_by_text("shop.py is removed.").wait_for()
    expect(page.locator("tr", has_text="shop.py")).to_have_count(0)


def test_sql(opened: Opened, site: Site, jobs: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements typed on the page: a result that changes, a job, an error at its place, a session that is killed."""
    # For the processes that the job manager starts.
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    tab = opened(viewport={"width": 1280, "height": 1000})
    page = tab.open("sql")
    page.get_by_role("button", name="Fill in an example").click()
    editor, outputs = page.get_by_label("SQL", exact=True), page.locator("section.output")
    script = editor.input_value()
    assert script.startswith("CREATE TABLE IF NOT EXISTS orders")
    archive = "CREATE TABLE archive (customer INT, `<b>amount</b>` INT) WITH ('connector' = 'blackhole');"
    insert = "INSERT INTO archive SELECT customer, amount FROM orders;"
    editor.fill(script.replace("SELECT", f"{archive}\n\n{insert}\n\nSELECT", 1))
    editor.press("Control+Enter")
    query = outputs.nth(3)
    expect(query.locator("tbody tr")).to_have_count(8)
    total = query.locator("tbody tr td:nth-child(2)")
    before = sum(map(int, total.all_inner_texts()))
    assert eventually(lambda: sum(map(int, total.all_inner_texts())) > before), "it changes while it is looked at"
    expect(query.locator(".pill")).to_have_text("Running")
    tab.shot("page-sql")
    query.get_by_role("button", name="Changes").click()
    expect(query.locator("tbody td.op", has_text="-U").first).to_be_visible()
    query.get_by_role("button", name="Stop").click()
    expect(query.locator(".pill")).to_have_text("Stopped")
    expect(query.locator("tbody tr").first).to_be_visible()
    # The job goes on, in the list as any other.
    job = outputs.nth(2).get_by_role("link", name="Open the job").get_attribute("href").rpartition("/")[2]
    site.wait(job, "RUNNING")
    outputs.nth(2).get_by_role("link", name="Open the job").click()
    page.get_by_role("heading", name="insert-into_default_catalog.default_database.archive").wait_for()
    site.cluster.supervisor.cancel(job)
    # The session is still there, also after a reload; what is selected runs alone; names are text.
    page.reload()
    page.get_by_role("link", name="SQL").click()
    editor.fill("SELECT 1;\n  DESCRIBE archive;\nSELECT custome\n  FROM orders;\nSELECT '<i>x</i>' AS `<script>`;")
    editor.evaluate("area => area.setSelectionRange(10, 28)")
    editor.press("Control+Enter")
    expect(outputs).to_have_count(1)
    expect(outputs.locator("td", has_text="<b>amount</b>")).to_be_visible()
    editor.evaluate("area => area.setSelectionRange(0, 0)")
    page.get_by_role("button", name="Run").click()
    expect(outputs).to_have_count(4)
    failed = page.locator("section.output.FAILED")
    expect(failed.get_by_role("alert")).to_contain_text("There is no column custome. Did you mean customer?")
    expect(failed.locator("pre.caret")).to_have_text("SELECT custome\n       ^^^^^^^")
    expect(page.locator(".gutter .wrong")).to_have_text("3")
    failed.get_by_role("button", name="line 3, column 8").click()
    chosen = "area => area.value.slice(area.selectionStart, area.selectionEnd)"
    assert editor.evaluate(chosen) == "custome"
    expect(outputs.nth(3).locator(".pill")).to_have_text("Not run")
    editor.fill("SELECT '<i>x</i>' AS `<script>`, CAST(NULL AS INT) AS nothing;")
    editor.press("Control+Enter")
    expect(outputs.locator("th").first).to_have_text("<script>")
    expect(outputs.locator("tbody td").first).to_have_text("<i>x</i>")
    expect(outputs.locator("tbody td").nth(1)).to_have_text("NULL")
    expect(outputs.locator(".pill")).to_have_text("Done")
    # A process that is gone is told, and the next statement has another one.
    (session,) = site.cluster.sql.listed()
    # Not by the page's heartbeat, which would take the message away from whoever runs the next statement.
    page.route("**/heartbeat", lambda route: route.fulfill(json={}))
    os.kill(session["pid"], signal.SIGKILL)
    editor.press("Control+Enter")
    page.get_by_role("alert").get_by_text("killed by signal 9 (SIGKILL)").wait_for()
    editor.press("Control+Enter")
    expect(outputs.locator("th").first).to_have_text("<script>")
    page.get_by_role("button", name="End it").click()
    page.get_by_label("Mode").wait_for()
    assert eventually(lambda: site.cluster.sql.listed() == [])


def test_a_token_for_looking_runs_no_sql(opened: Opened, site: Site) -> None:
    tab = opened(token=site.cluster.tokens.read_only)
    before = len(site.cluster.sql.listed())
    page = tab.open("sql")
    page.get_by_label("SQL", exact=True).fill("SELECT 1")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("alert").get_by_text("This token allows to look, not to change anything.").wait_for()
    assert len(site.cluster.sql.listed()) == before


def test_workers(opened: Opened) -> None:
    tab = opened()
    page = tab.open()
    page.get_by_text("Running jobs").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.get_by_role("heading", name="Workers").wait_for()
    page.locator("tbody tr", has_text="driver").first.wait_for()
    expect(page.locator(".figures")).to_contain_text("MiB")


def test_a_token_is_asked_for(opened: Opened, site: Site) -> None:
    tab = opened(token=None)
    page = tab.open()
    page.get_by_label("Token").fill("not the token")
    page.get_by_role("button", name="Open").click()
    page.get_by_role("alert").get_by_text("That is not this job manager's token.").wait_for()
    page.get_by_label("Token").fill(site.cluster.tokens.full)
    page.get_by_role("button", name="Open").click()
    page.get_by_text("Running jobs").wait_for()
    (cookie,) = tab.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("() => document.cookie") == ""
    assert site.cluster.tokens.full not in page.content() + page.url
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").wait_for()
    assert tab.context.cookies() == []


def test_a_token_for_looking_changes_nothing(opened: Opened, site: Site, jobs: dict[str, str]) -> None:
    tab = opened(token=site.cluster.tokens.read_only)
    page = tab.open(f"jobs/{jobs['good']}")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the job").click()
    page.get_by_role("status").get_by_text("This token allows to look, not to change anything.").wait_for()
    assert site.state(jobs["good"]) == "RUNNING"


def test_a_server_that_is_gone_is_told(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.open()
    page.get_by_role("link", name="clicks per user").wait_for()
    page.context.set_offline(True)
    page.locator(".live.off").wait_for()
    page.get_by_role("alert").get_by_text("The job manager does not answer.").wait_for()
    # What was known stays.
    assert page.get_by_role("link", name="clicks per user").count() == 1
    page.context.set_offline(False)
    page.locator(".live:not(.off)").wait_for()
    tab.problems.clear()


def test_dark_and_small(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = tab.open()
    page.get_by_role("link", name="clicks per user").wait_for()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    for path in ("", f"jobs/{jobs['good']}", f"jobs/{jobs['failed']}/exceptions", "submit", "sql"):
        tab.open(path)
        page.locator("main h1, main h2").first.wait_for()
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing to scroll sideways"
    page.get_by_label("Switch theme").click()
    page.wait_for_function("() => document.documentElement.dataset.theme === 'light'")
    page.reload()
    page.locator("main h1, main h2").first.wait_for()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "light", "it is remembered"


def test_a_graph_of_200_operators(opened: Opened, jobs: dict[str, str]) -> None:
    tab = opened()
    page = tab.page

    def large(route: Any) -> None:
        answer = route.fetch().json()
        answer["plan"]["nodes"] = [
            {
                "id": number,
                "type": f"operator {number}",
                "pact": "Operator" if number else "Data Source",
                "parallelism": 2,
                "uid": str(number),
                "predecessors": [{"id": (number - 1) // 2, "ship_strategy": "FORWARD"}] if number else [],
            }
            for number in range(200)
        ]
        route.fulfill(json=answer)

    page.route(f"**/firesteel/v1/jobs/{jobs['good']}", large)
    tab.open(f"jobs/{jobs['good']}")
    page.locator('[data-operator="operator 199"]').wait_for(state="attached")
    expect(page.locator(".graph .node")).to_have_count(200)
    # Letters that can be read: the graph begins in a size that is not too small, and operators can be looked for.
    assert page.locator('[data-operator="operator 0"]').bounding_box()["width"] > 90
    page.get_by_label("Find an operator").fill("operator 173")
    found = page.locator('[data-operator="operator 173"]')

    def in_sight() -> bool:
        place, frame = found.bounding_box(), page.locator(".graph").bounding_box()
        middle = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
        return (
            frame["x"] < middle[0] < frame["x"] + frame["width"]
            and frame["y"] < middle[1] < frame["y"] + frame["height"]
        )

    assert eventually(in_sight)
    found.click()
    page.get_by_role("heading", name="operator 173").wait_for()
