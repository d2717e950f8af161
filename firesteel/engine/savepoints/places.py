"""Where savepoints lie: a folder, or a URI of any file system that Arrow knows (file, hdfs, s3, gs, abfs)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from firesteel.common.private_files import make_private_folder, open_private
from firesteel.errors import ConfigurationError, SavepointError
from firesteel.filesystems import StorageOptions, file_system_of, joined, resolved

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """A folder somewhere. It travels to tasks as its address, with what is needed to get there.

    >>> Place("/data/savepoints").inside("sp-1", "manifest.json").address
    '/data/savepoints/sp-1/manifest.json'
    """

    address: str
    options: StorageOptions = field(default_factory=StorageOptions)

    @staticmethod
    def of(address: str, options: StorageOptions | None = None) -> Place:
        """A path becomes absolute: tasks may run in another folder."""
        return Place(resolved(address, "The path of a savepoint"), options or StorageOptions())

    def inside(self, *parts: str) -> Place:
        return replace(self, address=joined(self.address, *parts))

    def parent(self) -> Place:
        return replace(self, address=self.address.rpartition("/")[0])

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        # Arrow takes a part of a second to load, and every job's start would wait for it.
        from firesteel.filesystems.arrow import arrow_of

        try:
            return arrow_of(self.address, self.options)
        except ConfigurationError as error:
            raise SavepointError(str(error)) from error

    @property
    def filesystem(self) -> Any:
        return self._opened[0]

    @property
    def path(self) -> str:
        """The address as its file system takes it."""
        return self._opened[1]

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "options": self.options}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        object.__setattr__(self, "address", kept["address"])
        object.__setattr__(self, "options", kept["options"])

    def exists(self) -> bool:
        return bool(self.filesystem.get_file_info(self.path).type.name != "NotFound")

    def read(self) -> bytes:
        with self.filesystem.open_input_stream(self.path) as file:
            content: bytes = file.read()
        return content

    def write(self, content: bytes) -> None:
        """Writes a file at once: whoever looks sees all of it or nothing."""
        file_system_of(self.address, self.options).write(self.address, content)

    def reserve(self) -> None:
        """Before somebody else writes the file: on this machine only its owner will be able to read it."""
        if self._local:
            open_private(self.path, "wb").close()

    def make(self) -> None:
        """Makes the folder, and those above it that are missing. On this machine only its owner can open it, and so
        what is in it."""
        if self._local:
            make_private_folder(self.path)
        else:
            self.filesystem.create_dir(self.path, recursive=True)

    @property
    def _local(self) -> bool:
        return bool(self.filesystem.type_name == "local")

    def delete(self) -> None:
        """Removes the folder with all that is in it."""
        self.filesystem.delete_dir(self.path)

    def size(self) -> int:
        return int(self.filesystem.get_file_info(self.path).size)
