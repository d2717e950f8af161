"""Runs the programs of the documentation's pages and compares what they print with what the pages say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = [
    "state.md",
    "fault-tolerance.md",
    "savepoints.md",
    "sinks.md",
    "files.md",
    "writing-a-source.md",
    "writing-a-sink.md",
    "writing-an-operator.md",
    "column-operators.md",
    "table-connectors.md",
    "cep.md",
    "databases.md",
    "gelly.md",
    "hybrid-source.md",
]
ON_SPARK = ("gelly.md",)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_one_program_that_prints_what_it_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = BLOCK.findall((DOCS / page).read_text())
    program = tmp_path / "page.py"
    program.write_text("\n\n".join(code for kind, code in blocks if kind == "python"))
    monkeypatch.setenv("FIRESTEEL_MASTER", "local" if page in ON_SPARK else "memory")
    runpy.run_path(str(program), run_name="__main__")
    assert capsys.readouterr().out == "".join(text for kind, text in blocks if kind == "text")


def test_the_readme_shows_what_its_program_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (DOCS.parent / "README.md").read_text()
    code, shown = re.search(r"```python\n(.*?)^```$.*?^```\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL).groups()  # type: ignore[union-attr]
    (tmp_path / "program.py").write_text(code)
    monkeypatch.setenv("FIRESTEEL_MASTER", "memory")
    runpy.run_path(str(tmp_path / "program.py"), run_name="__main__")
    assert capsys.readouterr().out == shown
