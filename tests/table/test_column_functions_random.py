"""Random functions over random columns: what is computed for whole columns is what the function gives row by row."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings
from written_functions import outcome, user_function, written

from firesteel.table.functions.column_functions import GuardedColumn
from firesteel.table.functions.column_functions.column_values import GivenUpError
from firesteel.table.types import DataTypes
from firesteel.table.types.arrow import arrow_type
from firesteel.table.types.data_types import DataType

LEAST, MOST = -(1 << 63), (1 << 63) - 1
EXACT = 1 << 53

INTEGERS = (0, 1, -1, 2, 3, -7, 10, 255, 2**31 - 1, EXACT - 1, EXACT, EXACT + 1, -EXACT - 1, MOST, LEAST, MOST // 3)
FLOATS = (0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 3.5, 1e300, -1e300, 5e-324, 1e16, float(EXACT), 9.3e18)
STRANGE = (float("nan"), float("inf"), float("-inf"))
TEXTS = (
    "",
    "a",
    "B",
    "Rome",
    "rome ",
    " \t x\x1c",
    "a-b-c",
    "aaaa",
    "Zürich",
    "ß",
    "İ",
    "漢字",
    "\u00a0x\u2003",
    "😀b",
)

PARAMETERS: dict[str, tuple[str, DataType, st.SearchStrategy[Any]]] = {
    "a": ("int", DataTypes.BIGINT(), st.sampled_from(INTEGERS) | st.integers(-1000, 1000)),
    "b": ("int", DataTypes.INT(), st.integers(-5, 5)),
    "c": ("int", DataTypes.TINYINT(), st.integers(-128, 127)),
    "x": ("float", DataTypes.DOUBLE(), st.sampled_from(FLOATS) | st.floats(-100, 100)),
    "y": ("float", DataTypes.FLOAT(), st.sampled_from((*FLOATS[:7], *STRANGE)) | st.floats(-9, 9, width=32)),
    "s": ("str", DataTypes.STRING(), st.sampled_from(TEXTS)),
    "t": ("str", DataTypes.CHAR(3), st.sampled_from(TEXTS[:9])),
    "p": ("bool", DataTypes.BOOLEAN(), st.booleans()),
}
RESULTS: dict[str, tuple[DataType, ...]] = {
    "int": (DataTypes.BIGINT(), DataTypes.INT(), DataTypes.DOUBLE(), DataTypes.FLOAT(), DataTypes.SMALLINT(False)),
    "float": (DataTypes.DOUBLE(), DataTypes.FLOAT(), DataTypes.BIGINT(), DataTypes.BIGINT(False)),
    "str": (DataTypes.STRING(), DataTypes.VARCHAR(5), DataTypes.STRING(False)),
    "bool": (DataTypes.BOOLEAN(), DataTypes.INT(), DataTypes.DOUBLE(), DataTypes.BOOLEAN(False)),
}
CONSTANTS = {
    "int": (0, 1, -1, 2, 3, 7, -10, 100, EXACT, MOST),
    "float": (0.0, -0.0, 0.5, 1.0, -2.5, 1e17),
    "str": ("", "a", "x", "Rome", "é", "-"),
    "bool": (True, False),
}
KINDS = tuple(CONSTANTS)
NUMBERS = ("int", "float")
COLLECTIONS: dict[str, Any] = {
    "KNOWN": {"Rome", "a", "ß", None},
    "SIZES": [1, 2.5, True, "a"],
    "CODES": (3, -7, 2**53 + 1),
    "NAMES": {"Rome": [], "": 1},
    "LARGE": [5, 2**70],
    "WRONG": [float("nan"), 2**70],
}


@st.composite
def expressions(draw: Any, kind: str, depth: int) -> str:
    """An expression that mostly is of that kind; of another one it fails in many rows, as it should in both ways."""
    if draw(st.integers(0, 30)) == 0:
        kind = draw(st.sampled_from((*KINDS, "none")))
    if kind == "none":
        return "None"
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        names = [name for name, (own, _, _) in PARAMETERS.items() if own == kind]
        if draw(st.integers(0, 3)):
            return str(draw(st.sampled_from(names)))
        return f"({draw(st.sampled_from(CONSTANTS[kind]))!r})"

    def part(of: str) -> str:
        return str(draw(expressions(of, depth - 1)))

    def number() -> str:
        return part(draw(st.sampled_from(NUMBERS)))

    def constant(of: str) -> Any:
        return draw(st.sampled_from(CONSTANTS[of]))

    def any_kind() -> str:
        return str(draw(st.sampled_from(KINDS)))

    common = (
        lambda: f"({part(kind)} if {part('bool')} else {part(kind)})",
        lambda: f"({part(kind)} {draw(st.sampled_from(('and', 'or')))} {part(kind)})",
        lambda: f"({part(kind)} if {draw(st.sampled_from(list(PARAMETERS)))} is not None else {part(kind)})",
        lambda: f"{draw(st.sampled_from(('min', 'max')))}({part(kind)}, {part(kind)})",
    )
    own: tuple[Any, ...]
    if kind == "int":
        operators = st.sampled_from(("+", "-", "*", "//", "%", "&", "|", "^"))
        own = (
            lambda: f"({part('int')} {draw(operators)} {part('int')})",
            lambda: f"({part('int')} {draw(operators)} {constant('int')!r})",
            lambda: f"({part('int')} {draw(operators)} {part('bool')})",
            lambda: f"({draw(st.sampled_from('+-'))}{part('int')})",
            lambda: f"abs({part('int')})",
            lambda: f"({part('int')} ** {draw(st.integers(2, 4))})",
            lambda: f"int({number()})",
            lambda: f"round({part('float')})",
            lambda: f"int(str({part('int')}))",
            lambda: f"int({part('str')})",
            lambda: f"len({part('str')})",
        )
    elif kind == "float":
        operators = st.sampled_from(("+", "-", "*", "/", "//", "%"))
        own = (
            lambda: f"({number()} {draw(operators)} {part('float')})",
            lambda: f"({part('float')} {draw(operators)} {number()})",
            lambda: f"({part('int')} / {part('int')})",
            lambda: f"(-{part('float')})",
            lambda: f"abs({part('float')})",
            lambda: f"float({number()})",
            lambda: f"({part('float')} ** {draw(st.integers(2, 8))})",
            lambda: f"round({number()}, {draw(st.integers(1, 15))})",
            lambda: f"float(str({number()}))",
        )
    elif kind == "str":
        place = st.sampled_from(("", 0, 1, 2, -1, -2, 5, -9))
        own = (
            lambda: f"({part('str')} + {part('str')})",
            lambda: f"(f'<{{s}}{{{draw(st.sampled_from(('a', 'c', 't', 'p', 'x')))}!s}}|' + {part('str')})",
            lambda: f"{part('str')}.{draw(st.sampled_from(('upper', 'lower', 'strip', 'lstrip', 'rstrip')))}()",
            lambda: f"{part('str')}.{draw(st.sampled_from(('strip', 'lstrip', 'rstrip')))}({constant('str')!r})",
            lambda: f"{part('str')}.replace({constant('str')!r}, {constant('str')!r})",
            lambda: f"{part('str')}[{draw(place)}:{draw(place)}]",
            lambda: f"{part('str')}[{draw(st.sampled_from((0, 1, -1, -2)))}]",
            lambda: f"str({part(draw(st.sampled_from(KINDS)))})",
        )
    else:
        compared = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))

        def comparison() -> str:
            of = any_kind()
            other = draw(st.sampled_from(NUMBERS)) if of in NUMBERS else of
            return f"({part(of)} {draw(compared)} {part(other)})"

        def chain() -> str:
            return f"({number()} {draw(compared)} {number()} {draw(compared)} {number()})"

        def membership() -> str:
            of = any_kind()
            several = (constant(of), constant(of), constant(draw(st.sampled_from((of, of, "int")))), None)
            shown = ", ".join(map(repr, several[: draw(st.integers(1, 4))]))
            around = draw(st.sampled_from(("({},)", "[{}]", "{{{}}}")))
            collection = draw(st.sampled_from((around.format(shown), around.format(shown), *COLLECTIONS)))
            return f"({part(of)} {draw(st.sampled_from(('in', 'not in')))} {collection})"

        own = (
            comparison,
            comparison,
            chain,
            membership,
            lambda: f"(not {part(any_kind())})",
            lambda: f"bool({part(any_kind())})",
            lambda: f"({part(any_kind())} is None)",
            lambda: f"({part(any_kind())} == None)",
            lambda: f"{part('str')}.startswith({constant('str')!r})",
            lambda: f"{part('str')}.endswith(({constant('str')!r}, 'e'))",
            lambda: f"({constant('str')!r} in {part('str')})",
        )
    return str(draw(st.sampled_from((*own, *own, *common)))())


@st.composite
def functions(draw: Any) -> tuple[str, DataType]:
    """The source of a function, and the type of its results."""
    kind = draw(st.sampled_from(KINDS))
    result = draw(st.sampled_from(RESULTS[kind]))
    names = ", ".join(PARAMETERS)

    def some(of: str) -> str:
        return str(draw(expressions(of, draw(st.integers(1, 3)))))

    shape = draw(st.integers(0, 5))
    if shape < 3:
        return f"written = lambda {names}: {some(kind)}", result
    lines = [f"def written({names}):", "    '''A function.'''"]
    local = draw(st.sampled_from(list(PARAMETERS)))
    if shape == 3:
        lines += [f"    if {some('bool')}:", f"        return {some(kind)}", f"    return {some(kind)}"]
    elif shape == 4:
        lines += [f"    {local} = {some(PARAMETERS[local][0])}", f"    z = {some(kind)}"]
        lines += [f"    if {some('bool')}:", f"        z = {some(kind)}", "    return z"]
    else:
        lines += [f"    if {some('bool')}:", f"        {local} = {some(PARAMETERS[local][0])}"]
        lines += [f"    elif {some('bool')}:", "        raise ValueError(a)"]
        lines += ["    else:", f"        return {some(kind)}", f"    return {some(kind)}"]
    return "\n".join(lines) + "\n", result


@st.composite
def batches(draw: Any) -> list[pa.Array]:
    rows = draw(st.integers(1, 8))
    made = []
    for _, kind, values in PARAMETERS.values():
        each = values | st.none() if draw(st.integers(0, 2)) == 0 else values
        before = draw(st.integers(0, 2))
        found = draw(st.lists(each, min_size=rows + before, max_size=rows + before))
        # Slices have their values somewhere in a buffer.
        made.append(pa.array(found, arrow_type(kind)).slice(before))
    return made


TYPES = [kind for _, kind, _ in PARAMETERS.values()]
TRIED: dict[bool, int] = {True: 0, False: 0}


@settings(max_examples=400)
@given(functions(), st.lists(batches(), min_size=1, max_size=2))
def check(source: tuple[str, DataType], given_batches: list[list[pa.Array]]) -> None:
    text, result = source
    function = written(text, "written", **COLLECTIONS)
    by_rows, on_columns = user_function(function, result), user_function(function, result)
    reason = on_columns.look_for_column_form()
    if reason is not None:
        # What may be too long, or have an operand that no column has.
        assert on_columns.column_form is None
        return
    assert on_columns.column_form is not None
    guarded = GuardedColumn(on_columns.column_form, result)
    for batch in given_batches:
        expected = outcome(by_rows, batch, TYPES)
        try:
            found = guarded.computed(function, batch, TYPES, len(batch[0]))
        except (GivenUpError, pa.ArrowException):
            TRIED[False] += 1
        else:
            TRIED[True] += 1
            assert (str(found.type), [repr(each) for each in found.to_pylist()]) == expected
        assert outcome(on_columns, batch, TYPES) == expected


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_columns_have_what_rows_have() -> None:
    TRIED.update({True: 0, False: 0})
    check()
    # Not all of it was given up.
    assert TRIED[True] > 100, TRIED
