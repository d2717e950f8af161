"""Archives and cached files that a job brings, and the Python that runs it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.dependencies import Dependencies
from firesteel.errors import ConfigurationError, JobExecutionError, ProgramError


def archive_in(folder: Path, text: str = "forty-two", name: str = "bundle.zip") -> Path:
    """Data, a module, and a program that can be run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/answer.txt", text)
        archive.writestr("archived_module.py", f"TEXT = {text!r}\n")
        program = zipfile.ZipInfo("bin/say")
        program.external_attr = 0o755 << 16
        archive.writestr(program, f"#!/bin/sh\necho {text}\n")
        archive.writestr("../outside.txt", "not for here")
    return path


class Read(MapFunction):
    """What it finds of an archive and of a cached file."""

    def open(self, runtime_context: RuntimeContext) -> None:
        cache = runtime_context.get_distributed_cache()
        folder = cache.get_file("model")
        with open(os.path.join(folder, "data", "answer.txt")) as file:
            self.archived = file.read()
        said = subprocess.run([os.path.join(folder, "bin", "say")], capture_output=True, text=True, check=True)
        with open(cache.get_file("table")) as file:
            self.cached = file.read()
        tool = subprocess.run([cache.get_file("tool")], capture_output=True, text=True, check=True)
        # In a worker of Spark the archive is in the working directory, as in PyFlink's.
        near = os.path.exists("model/data/answer.txt")
        self.found = self.archived, said.stdout.strip(), self.cached, tool.stdout.strip(), near

    def map(self, value: Any) -> Any:
        from model.archived_module import TEXT  # type: ignore[import-not-found]

        return value, *self.found, TEXT


def use(env: StreamExecutionEnvironment, folder: Path, text: str) -> Any:
    (folder / text).mkdir(parents=True)
    (folder / text / "table.csv").write_text(f"table of {text}")
    (folder / text / "tool.sh").write_text(f"#!/bin/sh\necho tool of {text}\n")
    env.add_python_archive(str(archive_in(folder / text, text)), "model")
    env.register_cached_file((folder / text / "table.csv").as_uri(), "table")
    env.register_cached_file(str(folder / text / "tool.sh"), "tool", executable=True)
    return env.from_collection([1, 2, 3]).map(Read()).key_by(lambda record: record[0]).map(Read())


def used(text: str, near: bool) -> list[Any]:
    found = (text, text, f"table of {text}", f"tool of {text}", near, text)
    return [((number, *found), *found) for number in (1, 2, 3)]


@pytest.mark.both_engines
@pytest.mark.spark_sample(parallelism=2)
def test_functions_find_them(make_env: Any, tmp_path: Path, parallelism: int, engine: str) -> None:
    """One job after the other, with other content under the same names."""
    here = os.getcwd()
    for text in ("alpha", "beta"):
        with use(make_env(parallelism), tmp_path, text).execute_and_collect() as records:
            assert sorted(records) == used(text, near=engine == "spark")
    assert os.getcwd() == here
    assert not (tmp_path / "alpha" / "tool.sh").stat().st_mode & stat.S_IXUSR


def test_names_and_formats(make_env: Any, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "more.tar.gz", "w:gz") as archive:
        (tmp_path / "inner.txt").write_text("in a tar")
        archive.add(tmp_path / "inner.txt", "inner.txt")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "file.txt").write_text("in a folder")
    env = make_env()
    env.add_python_archive(str(archive_in(tmp_path)))
    env.add_python_archive(str(tmp_path / "more.tar.gz"), "nested/more")
    env.register_cached_file(str(tmp_path / "folder"), "folder")

    class Look(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.cache = runtime_context.get_distributed_cache()

        def map(self, path: str) -> Any:
            name, _, rest = path.partition(":")
            return Path(self.cache.get_file(name), rest).read_text()

    wanted = ["bundle.zip:data/answer.txt", "nested/more:inner.txt", "folder:deep/file.txt"]
    with env.from_collection(wanted).map(Look()).execute_and_collect() as records:
        assert list(records) == ["forty-two", "in a tar", "in a folder"]


def test_they_may_be_settings(make_env: Any, tmp_path: Path) -> None:
    """The keys that PyFlink's methods write."""
    (tmp_path / "configured_module.py").write_text("NUMBER = 7\n")
    (tmp_path / "table.csv").write_text("a table")
    settings = {
        "python.files": str(tmp_path / "configured_module.py"),
        "python.archives": f"{archive_in(tmp_path)}#settings",
        "pipeline.cached-files": f"name:table,path:'{tmp_path / 'table.csv'}',executable:false",
        "python.executable": sys.executable,
    }

    class Look(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            cache = runtime_context.get_distributed_cache()
            self.table = Path(cache.get_file("table")).read_text()
            self.answer = Path(cache.get_file("settings"), "data/answer.txt").read_text()

        def map(self, value: Any) -> Any:
            from configured_module import NUMBER  # type: ignore[import-not-found]

            return value, self.table, self.answer, NUMBER

    with make_env(config=settings).from_collection([1]).map(Look()).execute_and_collect() as records:
        assert list(records) == [(1, "a table", "forty-two", 7)]


def test_a_file_uri_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    archive = archive_in(folder)
    (folder / "module.py").write_text("")
    (folder / "requirements.txt").write_text("")
    plain = Dependencies().with_file(str(folder / "module.py")).with_archive(str(archive), None)
    by_uri = Dependencies().with_file((folder / "module.py").as_uri()).with_archive(archive.as_uri(), None)
    plain = plain.with_requirements(str(folder / "requirements.txt"), str(folder))
    by_uri = by_uri.with_requirements((folder / "requirements.txt").as_uri(), folder.as_uri())
    assert by_uri == plain


def test_what_is_not_there(make_env: Any, tmp_path: Path) -> None:
    env = make_env()
    with pytest.raises(ProgramError, match=r"add_python_archive\(\): there is no file '.*none\.zip'"):
        env.add_python_archive(str(tmp_path / "none.zip"))
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(ProgramError, match=r"text\.zip is neither a zip nor a tar file"):
        env.add_python_archive(str(tmp_path / "text.zip"))
    for target in ("../up", "/abs", ""):
        with pytest.raises(ProgramError, match="target_dir should be a relative path"):
            env.add_python_archive(str(archive_in(tmp_path)), target)
    with pytest.raises(ProgramError, match=r"register_cached_file\(\): there is no '.*none'"):
        env.register_cached_file(str(tmp_path / "none"), "name")
    env.register_cached_file(str(tmp_path / "text.zip"), "name")
    with pytest.raises(ProgramError, match="a file 'name' was registered already"):
        env.register_cached_file(str(tmp_path / "bundle.zip"), "name")

    class Miss(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_distributed_cache().get_file("nowhere")

        def map(self, value: Any) -> Any:
            return value

    for stream in (env.from_collection([1]), make_env().from_collection([1])):
        with (
            pytest.raises(JobExecutionError, match=r"There is no cached file 'nowhere'.*register_cached_file\(\)"),
            stream.map(Miss()).execute_and_collect() as records,
        ):
            list(records)


def test_the_python_of_the_workers(make_env: Any, tmp_path: Path) -> None:
    env = make_env()
    env.set_python_executable(sys.executable)
    for other in ("/bin/sh", "bundle.zip/env/bin/python", str(tmp_path / "python")):
        with pytest.raises(ProgramError, match=r"workers run with .*PYSPARK_PYTHON.*set_python_requirements"):
            env.set_python_executable(other)
    env = make_env(config={"python.executable": "/bin/sh"})
    env.from_collection([1]).print()
    with pytest.raises(ProgramError, match="workers run with"):
        env.execute()
    with pytest.raises(ConfigurationError, match=r"pipeline\.cached-files"):
        make_env(config={"pipeline.cached-files": "what"}).from_collection([1]).execute_and_collect()
