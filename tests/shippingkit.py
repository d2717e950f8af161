"""What jobs bring along."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from firesteel.datastream import StreamExecutionEnvironment


def tiny_wheel(folder: Path, answer: int = 42, more: str = "") -> Path:
    """A package as a wheel, which pip installs without a network and without building."""
    wheel = folder / "tiny_required-1.0-py3-none-any.whl"
    info = "tiny_required-1.0.dist-info"
    files = {
        "tiny_required/__init__.py": f"ANSWER = {answer}\n{more}",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-required\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    return wheel


def requirements_in(folder: Path) -> str:
    (folder / "requirements.txt").write_text(f"{tiny_wheel(folder)}\n")
    return str(folder / "requirements.txt")


def bring(env: StreamExecutionEnvironment, folder: Path, requirements: str, sides: str) -> Any:
    """A module, a folder and a requirement. This process itself cannot import them: only what is shipped is found."""
    (folder / "shipped_shapes").mkdir(parents=True)
    (folder / "shipped_single.py").write_text("def double(n):\n    return n * 2\n")
    (folder / "shipped_shapes" / "__init__.py").write_text(f"SIDES = {sides!r}\n")
    env.add_python_file(str(folder / "shipped_single.py"))
    env.add_python_file(str(folder / "shipped_shapes"))
    env.set_python_requirements(requirements)

    def use(n: int) -> Any:
        from shipped_shapes import SIDES  # type: ignore[import-not-found]
        from shipped_single import double  # type: ignore[import-not-found]
        from tiny_required import ANSWER  # type: ignore[import-not-found]

        return double(n), SIDES, ANSWER

    def use_again(record: Any) -> Any:
        import shipped_shapes

        return *record, shipped_shapes.SIDES

    return env.from_collection(list(range(40))).map(use).key_by(lambda r: r[0] % 7).map(use_again)


def brought(sides: str) -> list[Any]:
    return [(2 * n, sides, 42, sides) for n in range(40)]
