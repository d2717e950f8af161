"""MATCH_RECOGNIZE: rows of a pattern's variables as columns that expressions are over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from firesteel.table.functions.aggregates import aggregate_type
from firesteel.table.functions.binding import FunctionError, bind
from firesteel.table.logical.expression_resolver import ExpressionResolver
from firesteel.table.logical.expressions import Expression, InputRef, Literal, rewrite
from firesteel.table.logical.plan import Plan, Project, SortOrder, unique_names
from firesteel.table.logical.scope import Scope
from firesteel.table.logical.time_attributes import is_proctime, is_rowtime
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import NotSupportedError, SqlValidationError
from firesteel.table.types.data_types import DataType, DayTimeIntervalType, IntegralType

__all__ = ["Definition", "MatchRecognize", "PatternStep", "RowReference", "match_recognized"]

_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")


@dataclass(frozen=True)
class RowReference:
    """A column of one row of a match, or an aggregate of several: FIRST and LAST count from the first or last row of a
    variable, or of the whole match if ``variable`` is None."""

    function: str
    variable: str | None
    column: int | None
    """None for COUNT(*)."""
    offset: int
    type: DataType


@dataclass(frozen=True)
class PatternStep:
    """A variable, and how often it comes; ``most`` None means as often as it can."""

    variable: str
    least: int = 1
    most: int | None = 1
    greedy: bool = True


@dataclass(frozen=True)
class Definition:
    """What rows of a variable are: a column says so, or an expression over references to rows."""

    variable: str
    column: int | None
    condition: Expression | None = None
    references: tuple[RowReference, ...] = ()


@dataclass(frozen=True)
class MatchRecognize(Plan):
    """One row for each match of a pattern among the rows of a partition: the columns of the partition, and measures,
    which are expressions over these columns and the references behind them."""

    input: Plan
    partition: tuple[int, ...]
    order: tuple[SortOrder, ...]
    """The first column is the time."""
    steps: tuple[PatternStep, ...]
    skip: tuple[str, str | None]
    within: int | None
    definitions: tuple[Definition, ...]
    references: tuple[RowReference, ...]
    measures: tuple[Expression, ...]
    column_names: tuple[str, ...]
    processing_time: bool
    rowtimes: tuple[str, ...] = ()
    """Measures that are MATCH_ROWTIME()."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def types(self) -> tuple[DataType, ...]:
        return (*(self.input.types[key] for key in self.partition), *(each.type for each in self.measures))

    @property
    def inputs(self) -> tuple[Plan, ...]:
        return (self.input,)


class _RowResolver(ExpressionResolver):
    """What stands inside FIRST, LAST and aggregates: an expression over one row, and the variable that it is of."""

    def __init__(self, scope: Scope, text: str | None, variables: Sequence[str]) -> None:
        super().__init__(scope, text)
        self._variables = variables
        self.found: set[str | None] = set()

    def resolve(self, node: syntax.Node) -> Expression:
        if isinstance(node, syntax.Name):
            variable, parts = split_name(node, self._variables)
            self.found.add(variable)
            return super().resolve(replace(node, parts=parts))
        return super().resolve(node)

    def variable(self, node: syntax.Node) -> str | None:
        """The only variable."""
        if len(self.found) > 1:
            raise self.invalid(node, "All columns inside are of one variable of the pattern.")
        return next(iter(self.found), None)


def split_name(node: syntax.Name, variables: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The variable of a name, and the column."""
    if len(node.parts) > 1 and node.parts[0] in variables:
        return node.parts[0], node.parts[1:]
    return None, node.parts


class _PatternResolver(ExpressionResolver):
    """Resolves DEFINE and MEASURES. ``columns`` are expressions over the rows of the input, which grow."""

    def __init__(
        self,
        scope: Scope,
        text: str | None,
        variables: Sequence[str],
        columns: list[Expression],
        first: int = 0,
        measures: bool = False,
    ) -> None:
        super().__init__(scope, text)
        self._variables, self._columns, self._first, self._measures = variables, columns, first, measures
        self.references: list[RowReference] = []
        self.time: InputRef | None = None

    def resolve(self, node: syntax.Node) -> Expression:
        if isinstance(node, syntax.Name):
            variable, parts = split_name(node, self._variables)
            column = super().resolve(replace(node, parts=parts))
            return self._reference("LAST", variable, column, 0)
        if isinstance(node, syntax.FunctionCall):
            name = node.name.parts[-1].upper()
            if name in ("FIRST", "LAST"):
                return self._of_row(node, name)
            if name in ("PREV", "NEXT"):
                message = (
                    f"{name} is not supported, as in Flink: LAST(A.column, 1) is the row of A before the last one."
                )
                raise self.invalid(node, message)
            if name in ("CLASSIFIER", "MATCH_NUMBER"):
                raise self.invalid(node, f"{name}() is not supported, as in Flink.")
            if name == "MATCH_ROWTIME":
                return self._match_rowtime(node)
            if name == "MATCH_PROCTIME":
                return bind("PROCTIME", [])
        return super().resolve(node)

    def _match_rowtime(self, node: syntax.Node) -> Expression:
        if self.time is None or not self._measures:
            raise self.invalid(node, "MATCH_ROWTIME() is a measure, where rows are ordered by an event time.")
        return self._reference("LAST", None, self.time, 0, nullable=False)

    def _of_row(self, node: syntax.FunctionCall, name: str) -> Expression:
        if len(node.args) not in (1, 2):
            raise self.invalid(node, f"{name} takes a column, and a number of rows if one is wanted.")
        inner = _RowResolver(self.scope, self.text, self._variables)
        column = inner.resolve(node.args[0])
        offset = 0
        if len(node.args) == 2:
            given = ExpressionResolver(Scope([]), self.text).resolve(node.args[1])
            if not isinstance(given, Literal) or not isinstance(given.type, IntegralType):
                raise self.invalid(node.args[1], f"{name} counts rows with a whole number.")
            offset = given.value
        return self._reference(name, inner.variable(node), column, offset)

    def aggregate(self, node: syntax.FunctionCall, name: str) -> Expression:
        if node.distinct:
            raise self.invalid(node, "Aggregates of a pattern have no DISTINCT, as in Flink.")
        if name not in _AGGREGATES or node.filter is not None or node.order:
            raise self.unsupported(node, f"{name} in a pattern")
        stars = [argument for argument in node.args if isinstance(argument, syntax.Star)]
        inner = _RowResolver(self.scope, self.text, self._variables)
        if stars:
            qualifier = stars[0].qualifier
            variable = qualifier[-1] if qualifier else None
            column = None
        else:
            column = inner.resolve(node.args[0]) if node.args else None
            variable = inner.variable(node)
        try:
            kind = aggregate_type(name, [column.type] if column is not None else [], False, False)
        except FunctionError as error:
            raise self.invalid(node, str(error)) from None
        found = RowReference(name, variable, self._column(column) if column is not None else None, 0, kind)
        return self._placed(found)

    def _column(self, expression: Expression) -> int:
        if expression not in self._columns:
            self._columns.append(expression)
        return self._columns.index(expression)

    def _reference(
        self, function: str, variable: str | None, column: Expression, offset: int, nullable: bool = True
    ) -> Expression:
        kind = column.type.nullable() if nullable else column.type
        return self._placed(RowReference(function, variable, self._column(column), offset, kind))

    def _placed(self, reference: RowReference) -> Expression:
        if reference not in self.references:
            self.references.append(reference)
        return InputRef(self._first + self.references.index(reference), reference.type)


def match_recognized(node: syntax.MatchRecognize, input: Plan, scope: Scope, text: str | None) -> MatchRecognize:
    """The plan of the clause over the rows of a relation."""

    def invalid(at: syntax.Node, message: str) -> SqlValidationError:
        return SqlValidationError(message, text, at.span)

    if node.all_rows:
        raise invalid(node, "ALL ROWS PER MATCH is not supported, as in Flink: ONE ROW PER MATCH is.")
    if node.subsets:
        raise NotSupportedError("Not supported yet: SUBSET.", text, node.span)
    steps = _steps(node.pattern, text)
    variables = [step.variable for step in steps]
    columns: list[Expression] = list(input.refs())
    resolver = ExpressionResolver(scope, text)
    partition = [_place(resolver.resolve(each), columns) for each in node.partition]
    order, processing_time = _order(node, input, resolver, columns, text)
    if node.skip[1] is not None and node.skip[1] not in variables:
        raise invalid(node, f"AFTER MATCH SKIP TO {node.skip[1]}: the pattern has no such variable.")
    definitions = []
    for name, written in node.definitions:
        if name not in variables:
            raise invalid(written, f"The pattern has no variable {name}.")
        inside = _PatternResolver(scope, text, variables, columns)
        condition = inside.condition(written, "DEFINE")
        definitions.append(_definition(name, condition, inside.references, columns))
    inside = _PatternResolver(scope, text, variables, columns, len(partition), measures=True)
    time = InputRef(order[0].column, columns[order[0].column].type)
    inside.time = None if processing_time else time
    measures, names = [], []
    rowtimes = []
    for item in node.measures:
        measures.append(inside.resolve(item.expression))
        assert item.alias is not None
        names.append(item.alias)
        if isinstance(item.expression, syntax.FunctionCall) and str(item.expression.name).upper() == "MATCH_ROWTIME":
            rowtimes.append(item.alias)
    keys = [_name_of(each, at) for at, each in enumerate(node.partition)]
    added = len(columns) - len(input.names)
    below: Plan = input
    if added:
        below = Project(input, tuple(columns), unique_names([*input.names, *(f"$p{at}" for at in range(added))]))
    return MatchRecognize(
        below,
        tuple(partition),
        order,
        steps,
        node.skip,
        _within(node, text),
        tuple(definitions),
        tuple(inside.references),
        tuple(measures),
        unique_names([*keys, *names]),
        processing_time,
        tuple(rowtimes),
    )


def _name_of(node: syntax.Node, at: int) -> str:
    return node.parts[-1] if isinstance(node, syntax.Name) else f"EXPR${at}"


def _place(expression: Expression, columns: list[Expression]) -> int:
    if expression not in columns:
        columns.append(expression)
    return columns.index(expression)


def _definition(
    name: str, condition: Expression, references: Sequence[RowReference], columns: list[Expression]
) -> Definition:
    """A condition on the row at hand alone is a column of the input, which is computed for many rows at once."""
    if all(each.function == "LAST" and not each.offset and each.variable in (name, None) for each in references):
        rows = [columns[each.column] for each in references if each.column is not None]

        def of_row(part: Expression) -> Expression | None:
            return rows[part.index] if isinstance(part, InputRef) else None

        return Definition(name, _place(rewrite(condition, of_row), columns))
    return Definition(name, None, condition, tuple(references))


def _order(
    node: syntax.MatchRecognize,
    input: Plan,
    resolver: ExpressionResolver,
    columns: list[Expression],
    text: str | None,
) -> tuple[tuple[SortOrder, ...], bool]:
    if not node.order:
        raise SqlValidationError("MATCH_RECOGNIZE needs ORDER BY a time attribute.", text, node.span)
    found = []
    for item in node.order:
        last = item.descending if item.nulls_last is None else item.nulls_last
        found.append(SortOrder(_place(resolver.resolve(item.expression), columns), item.descending, last))
    first = found[0]
    by_clock = first.column < len(input.names) and is_proctime(input, first.column)
    by_event = first.column < len(input.names) and is_rowtime(input, first.column)
    if first.descending or not (by_clock or by_event):
        message = "Rows of MATCH_RECOGNIZE are ordered by a time attribute first, ascending: a column with a watermark."
        raise SqlValidationError(message, text, node.order[0].span)
    return tuple(found), by_clock


def _within(node: syntax.MatchRecognize, text: str | None) -> int | None:
    if node.within is None:
        return None
    found = ExpressionResolver(Scope([]), text).resolve(node.within)
    if not isinstance(found, Literal) or not isinstance(found.type, DayTimeIntervalType):
        raise SqlValidationError("WITHIN takes an interval of days or less.", text, node.within.span)
    return int(found.value.total_seconds() * 1000)


def _steps(pattern: syntax.PatternNode, text: str | None) -> tuple[PatternStep, ...]:
    """The steps of a pattern that Flink can run: variables one behind the other."""

    def refused(node: syntax.Node, message: str) -> SqlValidationError:
        return SqlValidationError(message, text, node.span)

    found: list[PatternStep] = []
    for part in pattern.items if pattern.kind == "sequence" else (pattern,):
        inner = part.items[0] if part.kind == "quantified" else part
        if inner.kind != "variable":
            what = {"sequence": "Groups of variables", "alternative": "Alternatives", "permute": "PERMUTE"}
            kind = what.get(inner.kind, "Exclusions")
            raise refused(part, f"{kind} are not supported in a pattern, as in Flink: write variables in a row.")
        step = PatternStep(inner.variable)
        if part.kind == "quantified":
            step = PatternStep(inner.variable, part.least, part.most, part.greedy)
            if (part.least, part.most) == (0, 1) and not part.greedy:
                raise refused(part, "A?? is not supported, as in Flink.")
        if any(each.variable == step.variable for each in found):
            raise refused(part, f"The variable {step.variable} comes twice: Flink takes each once.")
        found.append(step)
    last = found[-1]
    if last.greedy and last.least != last.most and (last.least, last.most) != (0, 1):
        message = "A pattern does not end with a greedy quantifier, as in Flink: write A+?, or another variable behind."
        raise refused(pattern, message)
    if all(step.least == 0 for step in found):
        raise refused(pattern, "The pattern would match without any row: one variable must come.")
    return tuple(found)
