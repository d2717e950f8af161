"""What the machine is, as far as it matters to a measurement; nothing that tells whose it is."""

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe() -> dict[str, str | int | None]:
    return {
        "cpu": first_match(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": memory_gib(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": java_version(),
        "pyspark": package_version("pyspark"),
        "firesteel": package_version("firesteel"),
    }


def first_match(path: Path, pattern: str) -> str | None:
    try:
        match = re.search(pattern, path.read_text())
    except OSError:
        return None
    return match[1].strip() if match else None


def memory_gib() -> int | None:
    kibibytes = first_match(Path("/proc/meminfo"), r"MemTotal:\s*(\d+)")
    return round(int(kibibytes) / 2**20) if kibibytes else None


def java_version() -> str | None:
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else "java"
    try:
        output = subprocess.run([command, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r'version "([^"]+)"', output)
    return match[1] if match else None


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
