"""The Python files that jobs bring: gathered by content, found by the job whose they are, and by no other."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shippingkit import tiny_wheel

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.engine import shipping
from firesteel.engine.imports import IMPORTS, Imports, JobFiles
from firesteel.engine.shipping import archive_of, gather
from firesteel.errors import ConfigurationError, ProgramError, SetupError

NAME = "module_of_a_job"


@pytest.fixture
def imports() -> Iterator[Imports]:
    """Whatever a test does to modules and paths, the next one finds them as they were."""
    modules, path = dict(sys.modules), list(sys.path)
    # Jobs that ran in this process before have left theirs.
    sys.path[:] = IMPORTS.without_files(path)
    sys.modules.pop("tiny_required", None)
    yield Imports()
    for name in sys.modules.keys() - modules.keys():
        del sys.modules[name]
    sys.modules.update(modules)
    sys.path[:] = path


def written(folder: Path, name: str, content: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return str(path)


def files_of(*paths: str, requirements: str | None = None) -> JobFiles | None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"firesteel.master": "memory"}))
    for path in paths:
        env.add_python_file(path)
    if requirements is not None:
        env.set_python_requirements(requirements)
    env.from_collection([1]).print()
    return gather(env._submission("files").dependencies)


def job(folder: Path, number: int) -> JobFiles:
    found = files_of(written(folder / str(number), f"{NAME}.py", f"NUMBER = {number}\n"))
    assert found is not None
    return found


def number() -> int:
    found: int = importlib.import_module(NAME).NUMBER
    return found


def test_a_worker_switches_between_jobs_and_loads_each_module_once(imports: Imports, tmp_path: Path) -> None:
    one, two = job(tmp_path, 1), job(tmp_path, 2)
    imports.switch(one)
    first: Any = importlib.import_module(NAME)
    assert first.NUMBER == 1
    imports.switch(two)
    assert number() == 2
    imports.switch(one)
    assert importlib.import_module(NAME) is first, "put back, not loaded again"
    with imports.of(two):
        assert number() == 2
    assert number() == 1
    imports.switch(None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(NAME)


def test_a_worker_prefers_a_jobs_module_to_one_that_it_has_from_elsewhere(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "elsewhere", f"{NAME}.py", "NUMBER = 0\n")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    elsewhere = importlib.import_module(NAME)
    imports.switch(job(tmp_path, 1))
    assert number() == 1
    imports.switch(None)
    assert importlib.import_module(NAME) is elsewhere


def test_what_the_process_works_with_is_never_taken_away(imports: Imports, tmp_path: Path) -> None:
    import json

    files = files_of(written(tmp_path, "json.py", "MINE = True\n"))
    imports.switch(files)
    assert sys.modules["json"] is json


def test_a_driver_holds_the_files_of_several_jobs(imports: Imports, tmp_path: Path) -> None:
    one, two = job(tmp_path, 1), job(tmp_path, 2)
    other = files_of(written(tmp_path, "another_module_of_a_job.py", "NUMBER = 3\n"))
    imports.hold(one, runs_here=True)
    imports.hold(one, runs_here=True)
    imports.hold(other, runs_here=True)
    assert number() == 1
    assert importlib.import_module("another_module_of_a_job").NUMBER == 3
    with pytest.raises(ConfigurationError, match=f"runs with a different module '{NAME}'.*rename one of them"):
        imports.hold(two, runs_here=True)
    imports.release(one)
    with pytest.raises(ConfigurationError, match="Another job of this process"):
        imports.hold(two, runs_here=True)
    imports.release(one)
    assert number() == 1, "who reads the job's results may still need it"
    imports.hold(two, runs_here=True)
    assert number() == 2
    assert imports.without_files(sys.path) == [path for path in sys.path if "firesteel-" not in Path(path).parent.name]


def test_in_the_programs_own_process_a_module_cannot_be_two(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "program", f"{NAME}.py", "NUMBER = 1\n")
    monkeypatch.syspath_prepend(tmp_path / "program")
    own = importlib.import_module(NAME)
    same = job(tmp_path, 1)
    imports.hold(same, runs_here=True)
    assert importlib.import_module(NAME) is own, "the same file: the program's classes stay what they are"
    imports.release(same)
    with pytest.raises(ConfigurationError, match=f"brings a module '{NAME}', but this process has already imported"):
        imports.hold(job(tmp_path, 2), runs_here=True)
    imports.hold(job(tmp_path, 2), runs_here=False)


def test_files_folders_and_archives(imports: Imports, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.writestr("packed_for_a_job/__init__.py", "NUMBER = 2\n")
        archive.writestr("../outside.py", "")
    written(tmp_path, "folder_of_a_job/deep/__init__.py", "NUMBER = 3\n")
    paths = [written(tmp_path, f"{NAME}.py", "NUMBER = 1\n"), str(tmp_path / "more.zip")]
    found = files_of(*paths, str(tmp_path / "folder_of_a_job"))
    assert found is not None
    assert files_of(*paths, str(tmp_path / "folder_of_a_job")) == found
    imports.switch(found)
    assert number() == 1
    assert importlib.import_module("packed_for_a_job").NUMBER == 2
    assert importlib.import_module("folder_of_a_job.deep").NUMBER == 3
    with zipfile.ZipFile(archive_of(found)) as archive:
        names = set(archive.namelist())
    assert names >= {f"files/{NAME}.py", "files/packed_for_a_job/__init__.py", "files/folder_of_a_job/deep/__init__.py"}
    assert not any("outside" in name for name in names)


def test_two_files_of_one_name_in_one_job(tmp_path: Path) -> None:
    paths = [written(tmp_path / str(n), f"{NAME}.py", f"NUMBER = {n}\n") for n in (1, 2)]
    assert files_of(paths[0], paths[0]) is not None
    with pytest.raises(ProgramError, match=f"brings {NAME}.py, and so does another file of the job"):
        files_of(*paths)


def test_requirements_are_installed_once(imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = shipping.subprocess.run
    monkeypatch.setattr(shipping.subprocess, "run", lambda *args, **more: calls.append(1) or real(*args, **more))
    wheel = tiny_wheel(tmp_path, answer=42)
    requirements = written(tmp_path, "requirements.txt", f"{wheel}\n")
    found = files_of(requirements=requirements)
    assert found is not None
    assert files_of(requirements=requirements) == found
    files_of(written(tmp_path, f"{NAME}.py", "NUMBER = 1\n"), requirements=requirements)
    assert len(calls) == 1
    imports.switch(found)
    assert importlib.import_module("tiny_required").ANSWER == 42
    with zipfile.ZipFile(archive_of(found)) as archive:
        assert "packages/tiny_required/__init__.py" in archive.namelist()
    wheel.unlink()
    tiny_wheel(tmp_path, answer=43, more="x = 1\n")
    other = files_of(requirements=requirements)
    assert len(calls) == 2, "what it names is another one now"
    imports.switch(other)
    assert importlib.import_module("tiny_required").ANSWER == 43


def test_requirements_that_cannot_be_installed(tmp_path: Path) -> None:
    requirements = written(tmp_path, "requirements.txt", f"{tmp_path}/no_such-1.0-py3-none-any.whl\n")
    for _ in range(2):
        with pytest.raises(SetupError, match=r"The requirements in .*requirements\.txt could not be installed"):
            files_of(requirements=requirements)


@pytest.mark.parametrize(
    "module",
    [
        "firesteel.runtime.task",
        "firesteel.engine.spark.daemon",
        "firesteel.connectors.source",
        "firesteel.connectors.kafka.reader",
    ],
)
def test_what_a_worker_loads_first_can_be_loaded_first(module: str) -> None:
    """A cycle shows only in a process that has loaded nothing else."""
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
