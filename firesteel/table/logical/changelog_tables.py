"""TO_CHANGELOG and FROM_CHANGELOG: changes as rows, and rows as changes."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.common.types import RowKind
from firesteel.table.logical.plan import FromChangelog, Plan, ToChangelog
from firesteel.table.sql import syntax
from firesteel.table.sql.errors import SqlValidationError, near_names
from firesteel.table.types.data_types import CharType, VarCharType

__all__ = ["CHANGELOG_FUNCTIONS", "changelog_table"]

CHANGELOG_FUNCTIONS = ("TO_CHANGELOG", "FROM_CHANGELOG")

_PARAMETERS = ("input", "op", "op_mapping", "uid")
_KINDS = {kind.name: kind.value for kind in RowKind}


class _Call:
    """A call and its arguments."""

    def __init__(self, call: syntax.FunctionCall, text: str | None) -> None:
        self.node, self._text = call, text
        self.name = call.name.parts[-1].upper()
        self.given: dict[str, syntax.Node] = {}
        for place, argument in enumerate(call.args):
            if isinstance(argument, syntax.NamedArgument):
                name, value = argument.name.lower(), argument.value
            else:
                name, value = _PARAMETERS[place] if place < len(_PARAMETERS) else "", argument
            if name not in _PARAMETERS or name in self.given:
                near = near_names(name, _PARAMETERS)
                raise self.invalid(argument, f"{self.name} takes {', '.join(_PARAMETERS)}, each once.{near}")
            self.given[name] = value

    def invalid(self, node: syntax.Node, message: str) -> SqlValidationError:
        return SqlValidationError(message, self._text, node.span)

    def table(self) -> syntax.TableArgument:
        found = self.given.get("input")
        if isinstance(found, syntax.Subquery):
            return syntax.TableArgument(found.query, span=found.span)
        if not isinstance(found, syntax.TableArgument):
            raise self.invalid(found or self.node, f"{self.name}(TABLE t) takes a table.")
        if found.partition:
            raise self.invalid(found.partition[0], f"{self.name} takes no PARTITION BY: it takes each row by itself.")
        return found

    def column(self) -> str:
        """What DESCRIPTOR names."""
        found = self.given.get("op")
        if found is None:
            return "op"
        if not isinstance(found, syntax.Descriptor) or len(found.names) != 1:
            raise self.invalid(found, "op => DESCRIPTOR(name) names one column.")
        return found.names[0].parts[-1]

    def mapping(self) -> dict[str, tuple[str, syntax.Node]] | None:
        """The constant map by its keys; a key may list several with commas."""
        found = self.given.get("op_mapping")
        if found is None:
            return None
        if not isinstance(found, syntax.MapConstructor):
            raise self.invalid(found, "op_mapping => MAP['INSERT', 'I', ...] takes a map of constant texts.")
        texts = [each.value if isinstance(each, syntax.Constant) else None for each in found.items]
        mapping: dict[str, tuple[str, syntax.Node]] = {}
        for keys, value, node in zip(texts[::2], texts[1::2], found.items[::2], strict=True):
            if not isinstance(keys, str) or not isinstance(value, str):
                raise self.invalid(node, "op_mapping takes constant texts.")
            for key in map(str.strip, keys.split(",")):
                if key in mapping:
                    raise self.invalid(node, f"op_mapping has {key!r} twice.")
                mapping[key] = value, node
        return mapping

    def kind(self, name: str, node: syntax.Node) -> int:
        if name not in _KINDS:
            message = f"There is no kind of rows {name!r}.{near_names(name, _KINDS)} The kinds are {', '.join(_KINDS)}."
            raise self.invalid(node, message)
        return _KINDS[name]


def changelog_table(
    call: syntax.FunctionCall, tables: Callable[[syntax.TableArgument], Plan], text: str | None, streaming: bool
) -> Plan:
    """The table that TO_CHANGELOG or FROM_CHANGELOG gives."""
    read = _Call(call, text)
    if not streaming:
        raise read.invalid(call, f"{read.name} is for streams, as in Flink: in batch mode nothing changes.")
    plan = tables(read.table())
    return _to_changelog(read, plan) if read.name == "TO_CHANGELOG" else _from_changelog(read, plan)


def _to_changelog(call: _Call, plan: Plan) -> Plan:
    column, mapping = call.column(), call.mapping()
    if column in plan.names:
        raise call.invalid(call.node, f"The table has a column {column}: op => DESCRIPTOR(name) gives another name.")
    codes: list[str | None] = list(_KINDS)
    if mapping is not None:
        codes = [None] * len(_KINDS)
        for name, (code, node) in mapping.items():
            codes[call.kind(name, node)] = code
    return ToChangelog(plan, column, tuple(codes))


def _from_changelog(call: _Call, plan: Plan) -> Plan:
    column, mapping = call.column(), call.mapping()
    if column not in plan.names:
        near = near_names(column, plan.names)
        raise call.invalid(call.node, f"The table has no column {column}, which would tell the kind.{near}")
    place = plan.names.index(column)
    if not isinstance(plan.types[place], CharType | VarCharType):
        raise call.invalid(call.node, f"{column} tells the kind, so it is a text, and not {plan.types[place]}.")
    pairs = dict(_KINDS)
    if mapping is not None:
        pairs = {code: call.kind(name, node) for code, (name, node) in mapping.items()}
        if _KINDS["UPDATE_AFTER"] in pairs.values() and _KINDS["UPDATE_BEFORE"] not in pairs.values():
            message = "op_mapping has UPDATE_AFTER, so it needs UPDATE_BEFORE, too, which takes back what was."
            raise call.invalid(call.given["op_mapping"], message)
    return FromChangelog(plan, place, tuple(pairs.items()))
