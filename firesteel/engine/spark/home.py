"""A Spark home made for a fast start, in the user's cache folder.

It borrows pip's PySpark by links, with four differences:

* no ``python/lib/pyspark.zip``: PySpark puts that archive first on every worker's path, where each process compiles all
  it imports. Without it workers import the installed package with its compiled files (0.4 s instead of 1.2 s each).
* ``bin/spark-submit`` runs Java at once, instead of starting a first JVM that works out how to start the second.
* a class-data-sharing archive (see :mod:`.warmup`), quiet logging, and JVM flags for short tasks.
* one class more on the class path, ``jvm/LocalFiles.java``: Hadoop's local file system without a process per file.

Everything is named by a digest of what it depends on (Java, PySpark, flags, this recipe), so a change makes a new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import pyspark

from firesteel.common.private_files import make_private_folder
from firesteel.engine.spark.java import Java

__all__ = ["LOCAL_FILES", "SparkHome", "cache_folder", "spark_home"]

_RECIPE = "5"

LOCAL_FILES = ("spark.hadoop.fs.file.impl", "firesteel.spark.LocalFiles")
"""How Hadoop reaches local files in a JVM with a home of ours. Its own way starts a process for every new file."""
_LOCAL_FILES_JAR = Path(__file__).parent / "jvm" / "local-files.jar"

_FLAGS = [
    # Tasks of ours are light in the JVM: the work is in Python. So collect simply.
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    # Spark's classes need more than the default threshold: without this a start has several full collections.
    "-XX:MetaspaceSize=256m",
    "-Xshare:auto",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    # What the JVM has to say of itself (were it to crash) does not belong among a job's results.
    "-XX:+DisplayVMOutputToStderr",
]

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
# Spark announces it on stderr if this logger's level is not the root's.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
# The failure of a query or task is raised in the driver; its trace need not be shown three times.
logger.query.name = org.apache.spark.sql.execution.streaming
logger.query.level = off
logger.executor.name = org.apache.spark.executor
logger.executor.level = off
logger.scheduler.name = org.apache.spark.scheduler
logger.scheduler.level = off
logger.python.name = org.apache.spark.api.python
logger.python.level = off
# What a failed task or planning process leaves behind is its consequence, and tells nobody anything.
logger.listener.name = org.apache.spark.TaskContextImpl
logger.listener.level = off
logger.arrow.name = org.apache.arrow.memory
logger.arrow.level = off
logger.planning.name = org.apache.spark.sql.execution.python.streaming
logger.planning.level = off
"""


@dataclass(frozen=True)
class SparkHome:
    """Where the made Spark home is, and its archive of classes."""

    path: Path
    java: Java

    @property
    def archive(self) -> Path:
        return self.path / "classes.jsa"

    @property
    def stamp(self) -> Path:
        """What the archive was made of, written after it."""
        return self.path / "classes.stamp"

    @property
    def made_of(self) -> str:
        """Names, sizes and times of the JVM and of Spark's jars. With others a JVM ignores the archive: PySpark was
        installed once more, or Java was updated in its place."""
        libraries = [self.java.home / "lib" / "modules", self.java.home / "lib" / "server" / "libjvm.so"]
        with contextlib.suppress(OSError):
            libraries += sorted((self.path / "jars").iterdir())
        found = hashlib.blake2b(digest_size=16)
        for library in libraries:
            with contextlib.suppress(OSError):
                known = library.stat()
                found.update(f"{library.name} {known.st_size} {known.st_mtime_ns}\n".encode())
        return found.hexdigest()

    @property
    def has_archive(self) -> bool:
        """Whether there is an archive that a JVM can use. The launcher splits its flags at white space."""
        try:
            return self.archive.exists() and self.stamp.read_text() == self.made_of and self.takes_archive
        except OSError:
            return False

    @property
    def takes_archive(self) -> bool:
        return not any(letter.isspace() for letter in str(self.path))

    @property
    def arguments(self) -> Path:
        return self.path / "java.args"


def cache_folder() -> Path:
    """The user's cache folder for Firesteel."""
    base = os.environ.get("FIRESTEEL_CACHE_DIR")
    return Path(base) if base else platformdirs.user_cache_path("firesteel", appauthor=False)


def spark_home(java: Java) -> SparkHome | None:
    """The made Spark home for this Java and PySpark; None where it cannot be made (then pip's own is used)."""
    original = Path(pyspark.__file__).parent
    try:
        jar = hashlib.blake2b(_LOCAL_FILES_JAR.read_bytes()).hexdigest()
        known = [_RECIPE, str(java.home), java.version, str(original), pyspark.__version__, jar, *_FLAGS, _LOG4J]
        digest = hashlib.blake2b("|".join(known).encode(), digest_size=6).hexdigest()
        path = cache_folder() / f"spark-{pyspark.__version__}-{digest}"
        if not (path / "bin" / "spark-submit").exists():
            _make(path, original, java)
    except (OSError, subprocess.SubprocessError):
        return None
    return SparkHome(path, java)


def _make(path: Path, original: Path, java: Java) -> None:
    make_private_folder(str(path.parent))
    # Made aside and renamed: two processes that start at once must not see half a home.
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=path.parent))
    try:
        (draft / "jars").symlink_to(original / "jars")
        (draft / "sbin").symlink_to(original / "sbin")
        (draft / "bin").mkdir()
        for script in (original / "bin").iterdir():
            if script.name != "spark-submit":
                (draft / "bin" / script.name).symlink_to(script)
        (draft / "conf").mkdir()
        (draft / "conf" / "log4j2.properties").write_text(_LOG4J, encoding="utf-8")
        options = _launcher_options(original, java)
        # The logging file by its own option: an archive of classes allows no folder of files in the class path.
        logging = f"-Dlog4j2.configurationFile=file:{path}/conf/log4j2.properties"
        shutil.copyfile(_LOCAL_FILES_JAR, draft / _LOCAL_FILES_JAR.name)
        lines = [*_FLAGS, *options, logging, "-cp", f"{path}/jars/*:{path}/{_LOCAL_FILES_JAR.name}"]
        (draft / "java.args").write_text("".join(f'"{line}"\n' for line in lines), encoding="utf-8")
        submit = draft / "bin" / "spark-submit"
        submit.write_text(
            "#!/bin/sh\n"
            "# Made by Firesteel: Spark's own launcher would start a JVM only to find out this command.\n"
            f'exec "{java.executable}" $FIRESTEEL_JVM_FLAGS "@{path}/java.args" '
            'org.apache.spark.deploy.SparkSubmit "$@"\n',
            encoding="utf-8",
        )
        submit.chmod(0o755)
        os.rename(draft, path)
        _remove_orphans(path.parent)
    except BaseException as error:
        # Ctrl-C leaves nothing behind either.
        shutil.rmtree(draft, ignore_errors=True)
        if not isinstance(error, OSError | subprocess.SubprocessError) or not (path / "bin" / "spark-submit").exists():
            raise


def _remove_orphans(folder: Path) -> None:
    """Homes whose PySpark is gone with its environment. Each holds an archive of some 180 MB."""
    for home in folder.glob("spark-*"):
        if not (home / "jars").exists():
            shutil.rmtree(home, ignore_errors=True)


def _launcher_options(original: Path, java: Java) -> list[str]:
    """The JVM options that Spark's launcher would add (module openings), asked of the launcher itself, once."""
    asked = subprocess.run(
        [
            java.executable,
            "-cp",
            f"{original}/jars/*",
            "org.apache.spark.launcher.Main",
            "org.apache.spark.deploy.SparkSubmit",
            "pyspark-shell",
        ],
        capture_output=True,
        check=True,
        timeout=60,
        # The Scala version spares the launcher a look for Spark's own build folders, which pip's package lacks.
        env={**os.environ, "SPARK_HOME": str(original), "JAVA_HOME": str(java.home), "SPARK_SCALA_VERSION": "2.13"},
    )
    words = [word.decode() for word in asked.stdout.split(b"\0")]
    # Not the vector module: only Spark's linear algebra uses it, and the JVM warns of it at every start.
    wanted = ("--add-opens", "--add-exports", "-XX:+Ignore", "-Djdk", "-Dio.netty", "-Djava")
    # From Java 24 on Arrow's and Netty's memory must be allowed; older ones ignore these.
    newer = ("--sun-misc-unsafe-memory-access", "--enable-native-access")
    found = [word for word in words if word.startswith((*wanted, *newer))]
    if java.major >= 24:
        # A package that is no more: opening it would only bring a warning.
        found = [word for word in found if "sun.security.action" not in word]
    return found
