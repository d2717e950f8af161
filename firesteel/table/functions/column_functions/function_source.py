"""The syntax tree of a function that exists.

A file may have been edited since it was imported, a line may have several lambdas, and a method may have been replaced.
So a tree counts only if it compiles to the very code that the function has.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import linecache
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["CodeIdentity", "code_identity", "function_tree"]

CodeIdentity = tuple[Any, ...]
"""What the meaning of a function's code depends on. Plain data, equal in all processes of one version of Python."""

FunctionTree = ast.FunctionDef | ast.Lambda

_KINDS_OF_CODE = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200
"""Flags: *args, **kwargs, generator, coroutine, iterable coroutine, asynchronous generator."""
_LONGEST_FILE = 2_000_000
"""Characters. A longer file was hardly written by hand, and takes a second to parse."""


def code_identity(code: types.CodeType) -> CodeIdentity:
    """What two codes have in common if and only if they do the same.

    >>> first, second, third = lambda n: n + 1, lambda n: n + 1, lambda n: n + True
    >>> code_identity(first.__code__) == code_identity(second.__code__)
    True
    >>> code_identity(first.__code__) == code_identity(third.__code__)
    False
    """
    return (
        code.co_code,
        tuple(map(_constant_identity, code.co_consts)),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags & _KINDS_OF_CODE,
        getattr(code, "co_exceptiontable", b""),
    )


def _constant_identity(value: Any) -> Any:
    """1, 1.0 and True are three constants, and so are 0.0 and -0.0. A set has no order of its own."""
    if isinstance(value, types.CodeType):
        return code_identity(value)
    if isinstance(value, tuple):
        return ("tuple", *map(_constant_identity, value))
    if isinstance(value, frozenset):
        return ("frozenset", *sorted(map(repr, map(_constant_identity, value))))
    return (type(value).__name__, repr(value))


def function_tree(function: types.FunctionType) -> FunctionTree | None:
    """The tree of a function; None if its source is not there, or not certainly the one that it was made of."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not source or len(source) > _LONGEST_FILE:
        return None
    wanted = code_identity(code)
    found = _functions_of(source)
    for tree in found.by_line.get(code.co_firstlineno, ()):
        if any(code_identity(each) == wanted for each in _compiled(tree, code.co_freevars, found.imports)):
            return tree
    return None


class _File(NamedTuple):
    by_line: dict[int, list[FunctionTree]]
    """The functions of the file, by the line that their code begins with."""
    imports: list[ast.stmt]
    """Python compiles calls of what is imported in another way."""


@functools.lru_cache(maxsize=8)
def _functions_of(source: str) -> _File:
    try:
        with _without_warnings():
            module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return _File({}, [])
    found: dict[int, list[FunctionTree]] = {}
    for each in ast.walk(module):
        if isinstance(each, ast.FunctionDef):
            # The code of a function begins with its first decorator.
            found.setdefault(min([each.lineno, *(line.lineno for line in each.decorator_list)]), []).append(each)
        elif isinstance(each, ast.Lambda):
            found.setdefault(each.lineno, []).append(each)
    return _File(found, [each for each in module.body if isinstance(each, ast.Import | ast.ImportFrom)])


def _compiled(tree: FunctionTree, around: tuple[str, ...], imports: Sequence[ast.stmt]) -> Iterator[types.CodeType]:
    """The code of the function alone. The names of the function around it have to be known as such."""
    module = ast.parse(f"def around({', '.join(around)}):\n    pass")
    outer = module.body[0]
    assert isinstance(outer, ast.FunctionDef)
    if isinstance(tree, ast.FunctionDef):
        plain = copy.copy(tree)
        plain.decorator_list = []
        outer.body = [plain]
    else:
        outer.body = [ast.Return(tree)]
    module.body = [*imports, outer]
    try:
        with _without_warnings():
            code = compile(ast.fix_missing_locations(module), "<function>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return
    for enclosing in _inner(code):
        yield from _inner(enclosing)


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Python has told them when it imported the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _inner(code: types.CodeType) -> Iterator[types.CodeType]:
    return (each for each in code.co_consts if isinstance(each, types.CodeType))
