"""Runs one program on PyFlink and on Firesteel and compares what they print.

A program is a file written for Firesteel, or a package with a ``__main__``. For PyFlink, ``firesteel`` becomes
``pyflink`` in its import lines and nothing else changes: the product's promise, read backwards. Each run has a process
of its own::

    .venv/bin/python tools/oracle.py compare                  # all of tests/compat/programs, on both engines
    .venv/bin/python tools/oracle.py compare word_count_batch my_program.py
    .venv/bin/python tools/oracle.py record word_count_batch  # keep PyFlink's output in tests/compat/expected
    .venv/bin/python tools/oracle.py show my_program.py       # only print what PyFlink prints

PyFlink's Python is ``.bench/pyflink/bin/python``, made by ``python -m benchmarks --prepare``, or another one
given by ``--pyflink``. A program says with constants at its top how far its output is fixed:

``ORDER``
    ``"all"`` (the default): every line has its place. ``"label"``: lines keep their order among those with
    the same prefix before ``"> "``. ``"none"``: no order.
``SUBTASKS``
    ``"free"`` (the default): the subtask numbers of print's prefixes are not compared. ``"exact"``: they are.
"""

import argparse
import ast
import difflib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "compat" / "programs"
EXPECTED = ROOT / "tests" / "compat" / "expected"
PYFLINK = ROOT / ".bench" / "pyflink" / "bin" / "python"

IMPORT = re.compile(r"^(\s*(?:from|import)\s+)firesteel\b", re.MULTILINE)
SUBTASK = re.compile(r"^([^>]*:)?\d+> ")


@dataclass(frozen=True)
class Rules:
    """How far a program's output is fixed."""

    order: str = "all"
    subtasks: str = "free"

    @classmethod
    def of(cls, source: str) -> "Rules":
        """The rules that the constants at the top of a program's source give."""
        given: dict[str, str] = {}
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                if name in ("ORDER", "SUBTASKS"):
                    given[name.lower()] = ast.literal_eval(statement.value)
        return cls(**given)

    def normalise(self, output: str) -> list[str]:
        """The lines of ``output`` in a form in which two right outputs are equal."""
        lines = output.splitlines()
        if self.subtasks == "free":
            lines = [SUBTASK.sub(lambda match: f"{match[1] or ''}*> ", line) for line in lines]
        if self.order == "label":
            lines.sort(key=label)
        elif self.order == "none":
            lines.sort()
        return lines


def label(line: str) -> str:
    """What stands before the first ``"> "`` of a line, if anything does."""
    head, separator, _ = line.partition("> ")
    return head if separator else ""


def for_pyflink(source: str) -> str:
    """The same program with PyFlink's imports."""
    return IMPORT.sub(r"\1pyflink", source)


def sources_of(program: Path) -> dict[str, str]:
    """What stands in the files of a program, by their names."""
    if program.is_dir():
        return {f"{program.name}/{file.name}": file.read_text() for file in sorted(program.glob("*.py"))}
    return {"program.py": program.read_text()}


def run(python: Path, sources: dict[str, str], environment: dict[str, str], timeout: float) -> str:
    """The standard output of a program, which must end well."""
    with tempfile.TemporaryDirectory() as directory:
        for name, source in sources.items():
            file = Path(directory) / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(source)
        package, inside, _ = next(iter(sources)).partition("/")
        # Workers find a package by the path, too.
        path = os.pathsep.join(filter(None, [directory, environment.get("PYTHONPATH")]))
        finished = subprocess.run(
            [str(python), *(["-m", package] if inside else [str(file)])],
            env=environment | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    if finished.returncode:
        raise RuntimeError(f"exit code {finished.returncode}\n{finished.stdout}\n{finished.stderr[-4000:]}")
    return finished.stdout


def on_pyflink(program: Path, python: Path, timeout: float) -> list[str]:
    """PyFlink's normalised output: its workers find the same Python through PATH."""
    sources = {name: for_pyflink(source) for name, source in sources_of(program).items()}
    environment = os.environ | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "_python_worker_execution_mode": "process",
    }
    return Rules.of("\n".join(sources.values())).normalise(run(python, sources, environment, timeout))


def on_firesteel(program: Path, timeout: float) -> list[str]:
    sources = sources_of(program)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return Rules.of("\n".join(sources.values())).normalise(run(Path(sys.executable), sources, environment, timeout))


def expected_of(program: Path) -> Path:
    return EXPECTED / f"{program.stem}.txt"


def record(program: Path, python: Path, timeout: float) -> bool:
    """Keep what PyFlink prints; True if it differs from what was kept before."""
    target = expected_of(program)
    text = "".join(f"{line}\n" for line in on_pyflink(program, python, timeout))
    changed = not target.exists() or target.read_text() != text
    target.write_text(text)
    return changed


def difference(expected: list[str], actual: list[str]) -> list[str]:
    return list(difflib.unified_diff(expected, actual, "pyflink", "firesteel", lineterm=""))


def find(names: list[str]) -> list[Path]:
    """The programs called ``names`` (paths, or names without .py of the set), or the whole set."""
    if not names:
        return sorted(PROGRAMS.glob("*.py"))
    paths = [Path(name) for name in names]
    return [path if path.suffix == ".py" or path.is_dir() else PROGRAMS / f"{path}.py" for path in paths]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare what programs print on PyFlink and on Firesteel.")
    parser.add_argument("action", choices=["compare", "record", "show"])
    parser.add_argument("programs", nargs="*", help="files, or names of programs in tests/compat/programs")
    parser.add_argument("--pyflink", type=Path, default=PYFLINK, help="Python of an environment with PyFlink")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one run")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if not options.pyflink.exists():
        sys.exit(f"no PyFlink at {options.pyflink}: run `python -m benchmarks --prepare` or give --pyflink")
    failed = 0
    for program in find(options.programs):
        print(f"{program.stem}: ", end="", flush=True)
        try:
            if options.action == "record":
                print("recorded" if record(program, options.pyflink, options.timeout) else "unchanged")
                continue
            expected = on_pyflink(program, options.pyflink, options.timeout)
            if options.action == "show":
                print(*expected, sep="\n  ")
                continue
            lines = difference(expected, on_firesteel(program, options.timeout))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            lines = [f"failed: {error}"]
        failed += bool(lines)
        print("\n".join(lines) if lines else "the same")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
