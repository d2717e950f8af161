"""Which tests share a process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import compiling
import pytest
from sharing import ENGINE, POSTGRES, PROGRAMS, RECOVERY, group_of, in_order, time_by_group


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/unit/test_keys.py::test_golden_values[1]", "tests/unit/test_keys.py"),
        ("tests/semantics/test_sinks.py::test_add_sink[3-spark]", PROGRAMS),
        ("tests/semantics/test_windows.py::test_all[3-spark-sessions]", PROGRAMS),
        ("tests/semantics/test_windows.py::test_all[3-memory-sparkling]", "tests/semantics/test_windows.py"),
        ("tests/compat/test_against_pyflink.py::test_prints[spark-union]", PROGRAMS),
        ("tests/table/test_batch_on_spark.py::test_queries", PROGRAMS),
        ("tests/table/test_batch_of_pyflink.py::test_results_on_spark_are_flinks", PROGRAMS),
        ("tests/table/test_batch_of_pyflink.py::test_results_are_flinks", "tests/table/test_batch_of_pyflink.py"),
        ("tests/engine/test_spark_life.py::test_cancel", ENGINE),
        ("tests/engine/test_spark_scripts.py::test_classes", "scripts: tests/engine/test_spark_scripts.py"),
        ("tests/recovery/test_replay.py::test_a_batch", RECOVERY),
        ("tests/semantics/test_hdfs.py::test_files", RECOVERY),
        ("tests/engine/test_spark_failures.py::test_no_java", "scripts: tests/engine/test_spark_failures.py"),
        ("tests/engine/test_spark_failures.py::test_a_program_without_sinks", ENGINE),
        ("tests/recovery/test_postgres_recovery.py::test_a_worker", POSTGRES),
    ],
    ids=lambda _: "",
)
def test_the_group_of_a_test(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


def test_large_groups_come_first_and_tests_of_a_group_in_their_order() -> None:
    names = [
        "tests/unit/test_a.py::z",
        "tests/engine/test_b.py::y",
        "tests/unit/test_a.py::x",
        "tests/engine/test_a.py",
    ]
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    assert [item.nodeid for item in in_order(items)] == [names[1], names[3], names[0], names[2]]


def test_modules_are_compiled_as_pytest_finds_them(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    from _pytest.assertion.rewrite import _read_pyc

    monkeypatch.setattr(compiling, "_config", pytestconfig, raising=False)
    module = tmp_path / "test_something.py"
    module.write_text("def test_it():\n    assert 1 == 2\n")
    compiling._compile(module)
    (compiled,) = tmp_path.rglob("*.pyc")
    code = _read_pyc(module, compiled)
    assert code is not None, "or each process would compile it again"
    assert "@pytest_ar" in code.co_names, "with assertions that explain themselves"
    module.write_text("def test_it(:\n")
    compiling._compile(module)


def test_where_the_time_went() -> None:
    phases = [
        ("tests/unit/test_a.py::x", 0.25),
        ("tests/unit/test_a.py::x", 0.5),
        ("tests/unit/test_b.py::y[a/b]", 0.5),
        ("tests/engine/test_spark_scripts.py::test_classes", 20.0),
        ("tests/engine/test_spark_life.py::test_cancel", 3.0),
    ]
    reports: list[Any] = [SimpleNamespace(nodeid=nodeid, duration=seconds) for nodeid, seconds in phases]
    assert [line.split() for line in time_by_group(reports)] == [
        ["20", "s", "1", "tests", "scripts"],
        ["3", "s", "1", "tests", *ENGINE.split()],
        ["1", "s", "2", "tests", "tests/unit"],
    ]
