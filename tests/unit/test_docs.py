"""Pages whose snippets promise to run do, and print what they say; pictures are what their script draws."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["time.md"])
def test_snippets_print_what_the_page_says(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    names: dict[str, object] = {"__name__": "__main__"}
    printed, compared = "", 0
    for kind, content in BLOCK.findall((ROOT / "docs" / page).read_text()):
        if kind == "python":
            exec(compile(content, page, "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert printed == content
            compared += 1
    assert compared > 5


def test_the_picture_of_watermarks_is_what_its_script_draws() -> None:
    spec = importlib.util.spec_from_file_location("draw_watermarks", ROOT / "tools" / "draw_watermarks.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    drawn = script.draw()
    assert drawn == script.IMAGE.read_text()
    ElementTree.fromstring(drawn)


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_links_between_pages_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", (ROOT / "docs" / page).read_text()):
        if not target.startswith("http"):
            assert (ROOT / "docs" / target).exists(), f"{page} links to {target}"
