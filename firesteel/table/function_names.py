"""Functions of a table environment by name: the part of :class:`~firesteel.table.TableEnvironment` about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.catalog.functions import FunctionCatalog, definition_of
from firesteel.table.functions.aggregates import KNOWN_AGGREGATES
from firesteel.table.functions.registry import names as built_in_names
from firesteel.table.logical.user_calls import with_user_functions
from firesteel.table.sql.cursor import Cursor
from firesteel.table.sql.errors import NotSupportedError
from firesteel.table.sql.parser import parse
from firesteel.table.sql.statements import Statement
from firesteel.table.sql.syntax import Node
from firesteel.table.udf import wrapped

__all__ = ["FunctionNames"]


class FunctionNames(ABC):
    """Gives functions names, and finds them in what is written."""

    _functions: FunctionCatalog
    _needed: StreamExecutionEnvironment
    """Has the files that functions need."""

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Gives a function a name in a catalog. Built-in functions of the same name go before it."""
        made = definition_of(wrapped(function), "create_temporary_function()")
        self._functions.create(Cursor(path).name().parts, made, temporary=True)

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Gives a function a name that is the same in all catalogs, and goes before built-in functions."""
        self._functions.create_system(name, definition_of(wrapped(function), "create_temporary_system_function()"))

    def drop_temporary_function(self, path: str) -> bool:
        """Forgets a temporary function; False if there is none."""
        return self._functions.drop(Cursor(path).name().parts, temporary=True, if_exists=True)

    def drop_temporary_system_function(self, name: str) -> bool:
        """Forgets a temporary system function; False if there is none."""
        return self._functions.drop_system(name, if_exists=True)

    def drop_function(self, path: str) -> bool:
        """Forgets a function of ``CREATE FUNCTION``; False if there is none."""
        return self._functions.drop(Cursor(path).name().parts, temporary=False, if_exists=True)

    def list_user_defined_functions(self) -> list[str]:
        """Users' functions that can be called by their bare names."""
        return self._functions.names()

    def list_functions(self) -> list[str]:
        """All functions that can be called by their bare names."""
        built_in = (name.lower() for name in (*built_in_names(), *KNOWN_AGGREGATES) if name[0].isalpha())
        return sorted({*self._functions.names(), *built_in})

    def create_java_function(self, path: str, function_class_name: str, ignore_if_exists: bool | None = None) -> None:
        """Refused: there is no Java engine."""
        raise _java(function_class_name)

    def create_java_temporary_function(self, path: str, function_class_name: str) -> None:
        """Refused: there is no Java engine."""
        raise _java(function_class_name)

    def create_java_temporary_system_function(self, name: str, function_class_name: str) -> None:
        """Refused: there is no Java engine."""
        raise _java(function_class_name)

    # What functions need in workers.

    def add_python_file(self, file_path: str) -> None:
        """Ships a file, folder or zip to the workers, where functions can import it."""
        self._needed.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Ships the packages of a requirements file to the workers."""
        self._needed.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Ships a zip or tar file to the workers, unpacked to a folder."""
        self._needed.add_python_archive(archive_path, target_dir)

    def _parsed(self, stmt: str) -> Statement:
        statement = parse(stmt)
        if self._functions or "CURRENT_DATABASE" in stmt.upper():
            statement = self._with_functions(statement)
        return statement

    def _with_functions(self, node: Any) -> Any:
        """What was written, in which the calls of users' functions know them."""
        if not isinstance(node, Node):
            return node
        return with_user_functions(node, self._functions.find, self.get_current_database())

    @abstractmethod
    def get_current_database(self) -> str:
        """The name of the current database."""


def _java(name: str) -> NotSupportedError:
    return NotSupportedError(
        f"{name}: functions in Java cannot run here, Firesteel runs Python. Write it as a Python function with udf()."
    )
