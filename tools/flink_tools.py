"""Flink's own programs, from PyPI's apache-flink-libraries: its command line and its history server; and its SQL
client, some JARs of which Maven fetches.

They are tried against the job manager and are no part of Firesteel. The package is large (330 MB): it is downloaded
once into the user's cache folder, of which only the JARs that are needed stay.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import local_server
import platformdirs
from filelock import FileLock

from firesteel.engine.spark.java import find_java
from firesteel.errors import SetupError

__all__ = ["flink", "flink_command", "sql_client", "why_no_sql_client", "why_not"]

VERSION = "2.3.0"
JARS = ("flink-dist", "log4j-1.2-api", "log4j-api", "log4j-core", "log4j-slf4j-impl")


def _folder() -> Path:
    chosen = os.environ.get("FIRESTEEL_FLINK_HOME")
    return Path(chosen) if chosen else platformdirs.user_cache_path("firesteel", appauthor=False) / f"flink-{VERSION}"


@cache
def jars() -> tuple[Path, ...]:
    """The JARs, downloaded where they are missing."""
    folder = _folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "complete").exists():
            folder.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
                command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", aside]
                subprocess.run([*command, f"apache-flink-libraries=={VERSION}"], check=True, timeout=1200)
                (wheel,) = Path(aside).iterdir()
                with zipfile.ZipFile(wheel) as archive:
                    for name in archive.namelist():
                        if name.startswith("pyflink/lib/") and name.split("/")[-1].startswith(JARS):
                            with archive.open(name) as source, open(folder / name.split("/")[-1], "wb") as target:
                                shutil.copyfileobj(source, target)
            (folder / "complete").touch()
    return tuple(sorted(folder.glob("*.jar")))


@cache
def why_not() -> str:
    """Why Flink's programs cannot be run; empty if they can."""
    try:
        find_java()
        jars()
    except (SetupError, OSError, subprocess.SubprocessError, ValueError) as error:
        return f"Flink {VERSION} cannot be had: {error}"
    return ""


@cache
def sql_client_jars() -> tuple[Path, ...]:
    """What the SQL client needs besides, fetched where it is missing."""

    def fetch(folder: Path) -> None:
        pom = str(Path(__file__).parent / "flink_sql_client" / "pom.xml")
        local_server.maven(
            "copy-dependencies", "-f", pom, "-DexcludeTransitive=true", into=folder, what="Flink's SQL client"
        )

    return tuple(sorted(local_server.fetched(local_server.cache(f"flink-sql-client-{VERSION}"), fetch).glob("*.jar")))


@cache
def why_no_sql_client() -> str:
    """Why Flink's SQL client cannot be run; empty if it can."""
    try:
        sql_client_jars()
    except (OSError, RuntimeError) as error:
        return f"Flink's SQL client {VERSION} cannot be had: {error}"
    return why_not()


def flink_command(
    main: str, conf: Path, *arguments: str, besides: tuple[Path, ...] = ()
) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment that run a class of Flink's. ``besides``: more JARs."""
    (conf / "log4j.properties").write_text("rootLogger.level = OFF\n")
    if not (conf / "config.yaml").exists():
        (conf / "config.yaml").write_text("rest.address: 127.0.0.1\n")
    options = [f"-Dlog4j.configurationFile={conf / 'log4j.properties'}", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.util", "java.time")]
    java = str(Path(find_java().home) / "bin" / "java")
    command = [java, *options, *opened, "-cp", os.pathsep.join(map(str, besides + jars())), main, *arguments]
    return command, {**os.environ, "FLINK_CONF_DIR": str(conf)}


def flink(address: str, token: str, conf: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Flink's command line: ``flink(address, token, folder, "list", "-a")``. The address goes where Flink wants it."""
    action, *more = arguments
    command, environment = flink_command("org.apache.flink.client.cli.CliFrontend", conf, action, "-m", address, *more)
    environment["FLINK_REST_CLIENT_HEADERS"] = f"Authorization:Bearer {token}"
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


def sql_client(address: str, token: str, conf: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Flink's SQL client, not embedded but with a gateway: ``sql_client(address, token, folder, "-f", "file.sql")``."""
    main, history = "org.apache.flink.table.client.SqlClient", ("-hist", str(conf / "history"))
    command, environment = flink_command(
        main, conf, "gateway", "-e", address, *history, *arguments, besides=sql_client_jars()
    )
    environment["FLINK_REST_CLIENT_HEADERS"] = f"Authorization:Bearer {token}"
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL
    )
