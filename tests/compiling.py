"""Test modules are compiled once, before several processes import them.

pytest compiles a module of tests itself, with assertions that explain themselves, and keeps the result. But processes
that start at the same time have nothing to find yet, and where Python may not keep what it has compiled
(``PYTHONDONTWRITEBYTECODE``) they never have: each would compile all of it, six seconds of the first quarter minute.
How pytest does it is not public. Where a version does it differently, its processes compile as ever.
"""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

__all__ = ["compile_tests"]

_config: pytest.Config


def compile_tests(config: pytest.Config, folder: Path) -> None:
    """Compiles all modules of a folder that pytest would, on all cores, unless that was done before."""
    global _config
    _config = config
    files = [path for path in folder.rglob("*.py") if path.name.startswith("test_") or path.name == "conftest.py"]
    files.sort(key=lambda path: path.stat().st_size, reverse=True)
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as processes:
        processes.map(_compile, files, chunksize=8)


def _compile(path: Path) -> None:
    try:
        from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc, _rewrite_test, _write_pyc, get_cache_dir

        compiled = get_cache_dir(path) / (path.stem + PYC_TAIL)
        if _read_pyc(path, compiled) is None:
            compiled.parent.mkdir(parents=True, exist_ok=True)
            source, code = _rewrite_test(path, _config)
            _write_pyc(SimpleNamespace(trace=lambda text: None), code, source, compiled)  # type: ignore[arg-type]
    except (ImportError, TypeError, ValueError, OSError, SyntaxError):
        # Whoever imports it finds out.
        return
