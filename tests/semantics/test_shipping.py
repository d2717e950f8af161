"""Python files and requirements that a job brings, where it runs in the program's own process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kit import slow_numbers
from shippingkit import bring, brought, requirements_in

from firesteel.common import WatermarkStrategy
from firesteel.errors import ConfigurationError


def test_jobs_with_different_files_of_one_name_one_after_the_other(make_env: Any, tmp_path: Path) -> None:
    requirements = requirements_in(tmp_path)
    for sides in ("triangle", "square"):
        with bring(make_env(2), tmp_path / sides, requirements, sides).execute_and_collect() as records:
            assert sorted(records) == brought(sides)


def test_while_one_runs_a_different_module_of_the_same_name_is_refused(make_env: Any, tmp_path: Path) -> None:
    def start(name: str) -> Any:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "shipped_for_long.py").write_text(f"NAME = {name!r}\n")
        env = make_env()
        env.add_python_file(str(tmp_path / name / "shipped_for_long.py"))
        env.from_source(slow_numbers(100), WatermarkStrategy.no_watermarks(), "numbers").print()
        return env.execute_async()

    running = start("one")
    try:
        with pytest.raises(ConfigurationError, match="runs with a different module 'shipped_for_long'"):
            start("other")
    finally:
        running.cancel()
    start("other").cancel()
