"""Files on any file system that Spark knows, through Hadoop's client in the JVM."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from firesteel.filesystems import StorageOptions, hadoop_uri
from firesteel.filesystems.paths import scheme_of

__all__ = ["HadoopStorage", "hadoop_options"]

WHOLE_OBJECTS = ("s3a", "gs")
"""File systems on which a file appears, or is replaced, in one step when it is closed. Renaming is none there: the file
that was there is deleted, another one is copied, and who dies in between has lost both."""


def hadoop_options(session: SparkSession, settings: Mapping[str, str]) -> StorageOptions:
    """Access to object stores: by the job's own settings, or else as the session's client has it."""
    conf: Any = session.sparkContext._jsc.hadoopConfiguration()
    return StorageOptions.from_hadoop(
        lambda key: settings.get(f"spark.hadoop.fs.s3a.{key}") or conf.get(f"fs.s3a.{key}")
    )


class HadoopStorage:
    """A file system behind a URI."""

    def __init__(self, session: SparkSession) -> None:
        self._jvm: Any = session.sparkContext._jvm
        self._conf: Any = session.sparkContext._jsc.hadoopConfiguration()

    def _of(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(hadoop_uri(path))
        try:
            return place.getFileSystem(self._conf), place
        except Py4JJavaError as error:
            raise _translated(path, error) from error

    def exists(self, path: str) -> bool:
        system, place = self._of(path)
        try:
            return bool(system.exists(place))
        except Py4JJavaError as error:
            raise _translated(path, error) from error

    def is_folder(self, path: str) -> bool:
        system, place = self._of(path)
        return self.exists(path) and bool(system.getFileStatus(place).isDirectory())

    def sizes(self, folder: str) -> dict[str, int]:
        system, place = self._of(folder)
        if not self.is_folder(folder):
            return {}
        try:
            return {one.getPath().getName(): int(one.getLen()) for one in system.listStatus(place) if one.isFile()}
        except Py4JJavaError as error:
            raise _translated(folder, error) from error

    def read(self, path: str) -> bytes:
        # Only those who read wait for it to load.
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

        system, place = self._of(path)

        def content() -> bytes:
            stream = system.open(place)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

        # Hadoop's local file system renames a file and then its checksums: in between they do not fit.
        retrying = Retrying(
            stop=stop_after_attempt(4),
            wait=wait_chain(*map(wait_fixed, (0.01, 0.1, 0.5))),
            retry=retry_if_exception(_does_not_fit),
            reraise=True,
        )
        try:
            return retrying(content)
        except Py4JJavaError as error:
            raise _translated(path, error) from error

    def write(self, path: str, content: bytes) -> None:
        if scheme_of(hadoop_uri(path)) in WHOLE_OBJECTS:
            self.overwrite(path, content)
            return
        system, place = self._of(path)
        try:
            parent = place.getParent()
            self.make_folder(parent.toString())
            draft = self._jvm.org.apache.hadoop.fs.Path(parent, f".{place.getName()}.{uuid.uuid4().hex[:8]}")
            stream = system.create(draft, True)
            system.setPermission(draft, self._permission("600"))
            try:
                stream.write(bytearray(content))
                # Where the file system can: what is written is on disk then.
                stream.hsync()
            finally:
                stream.close()
            context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(place.toUri(), self._conf)
            context.rename(draft, place, self._overwriting())
        except Py4JJavaError as error:
            raise _translated(path, error) from error

    def create(self, path: str, content: bytes) -> bool:
        system, place = self._of(path)
        try:
            self.make_folder(place.getParent().toString())
            self._fill(system.create(place, False), content)
        except Py4JJavaError as error:
            # HDFS has another error where somebody is writing the file just now.
            if any(name in error.java_exception.toString() for name in ("FileAlreadyExists", "AlreadyBeingCreated")):
                return False
            raise _translated(path, error) from error
        return True

    def overwrite(self, path: str, content: bytes) -> None:
        system, place = self._of(path)
        try:
            self._fill(system.create(place, True), content)
        except Py4JJavaError as error:
            raise _translated(path, error) from error

    @staticmethod
    def _fill(stream: Any, content: bytes) -> None:
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def make_folder(self, path: str) -> None:
        system, place = self._of(path)
        try:
            # Those above it are made likewise. Object stores have no permissions, and take no notice.
            system.mkdirs(place, self._permission("700"))
        except Py4JJavaError as error:
            raise _translated(path, error) from error

    def _permission(self, octal: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.permission.FsPermission(octal)

    def _overwriting(self) -> Any:
        """The options of a rename, as Java's variable arguments want them."""
        options = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        gateway = SparkContext._gateway
        assert gateway is not None
        array = gateway.new_array(options, 1)
        array[0] = options.OVERWRITE
        return array

    def delete(self, path: str) -> None:
        system, place = self._of(path)
        try:
            system.delete(place, True)
        except Py4JJavaError as error:
            raise _translated(path, error) from error

    def remove_if_empty(self, folder: str) -> None:
        system, place = self._of(folder)
        # Not recursively: refused where something is in it.
        with contextlib.suppress(Py4JJavaError):
            system.delete(place, False)


def _does_not_fit(error: BaseException) -> bool:
    return isinstance(error, Py4JJavaError) and error.java_exception.getClass().getName().endswith(".ChecksumException")


def _translated(path: str, error: Py4JJavaError) -> OSError:
    java = error.java_exception
    text = f"{path}: {java.getMessage() or java.toString()}"
    return FileNotFoundError(text) if "FileNotFound" in java.getClass().getName() else OSError(text)
