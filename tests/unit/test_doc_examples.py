"""Runs what the documentation shows: the code blocks of a page in order, then the tests that they define.

Pages that promise it print what they say; pictures are what their script draws; links lead somewhere.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE_OR_TEXT = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNNABLE = ("testing-your-functions.md",)


def _namespace(page: str) -> dict[str, Any]:
    text = (DOCS / page).read_text()
    # A name that cannot be imported: classes travel by value, as those of a script do.
    namespace: dict[str, Any] = {"__name__": f"docs.{page}"}
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start(1))
        # Empty lines in front, so that a traceback names the page's own line.
        exec(compile("\n" * line + found.group(1), str(DOCS / page), "exec"), namespace)
    return namespace


def _tests() -> list[Any]:
    return [
        pytest.param(value, id=f"{page}-{name}")
        for page in RUNNABLE
        for name, value in _namespace(page).items()
        if name.startswith("test_")
    ]


@pytest.mark.parametrize("test", _tests())
def test_what_a_page_shows_runs(test: Any) -> None:
    test()


def test_pages_are_linked_from_the_readme() -> None:
    readme = (DOCS.parent / "README.md").read_text()
    assert [page.name for page in DOCS.glob("*.md") if f"docs/{page.name}" not in readme] == []


@pytest.mark.parametrize("page", ["formats.md"])
def test_what_a_page_asserts_holds(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    assert _namespace(page)


@pytest.mark.parametrize(("page", "least"), [("time.md", 5), ("table.md", 5), ("table-batch.md", 3)])
def test_snippets_print_what_the_page_says(
    page: str, least: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    names: dict[str, object] = {"__name__": "__main__"}
    printed, compared = "", 0
    for kind, content in CODE_OR_TEXT.findall((DOCS / page).read_text()):
        if kind == "python":
            exec(compile(content, page, "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert printed == content
            compared += 1
    assert compared >= least


def test_the_picture_of_watermarks_is_what_its_script_draws() -> None:
    spec = importlib.util.spec_from_file_location("draw_watermarks", DOCS.parent / "tools" / "draw_watermarks.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    drawn = script.draw()
    assert drawn == script.IMAGE.read_text()
    ElementTree.fromstring(drawn)


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_between_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", (DOCS / page).read_text()):
        if not target.startswith("http"):
            assert (DOCS / target).exists(), f"{page} links to {target}"
