"""Runs what the documentation shows: the code blocks of a page in order, then the tests that they define."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
