"""Shows what a savepoint, or the checkpoint of a job that does not run, has: operators, positions, states as tables."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from firesteel.cli.showing import moment, table
from firesteel.errors import SavepointError

if TYPE_CHECKING:
    from firesteel.state_processor import Savepoint, StateInfo

__all__ = ["HELP", "configure", "run"]

HELP = "show the state in a savepoint or checkpoint, as tables"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="the savepoint, or the checkpoint folder of a job that does not run")
    parser.add_argument("operator", nargs="?", help="show rows of this one: its uid, the beginning of it, or its name")
    parser.add_argument("state", nargs="?", help="only this state of the operator")
    parser.add_argument("-k", "--key", default="", help="only rows with this text in their key")
    parser.add_argument("-n", "--limit", type=int, default=20, help="how many rows of a state (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(options: argparse.Namespace) -> int:
    # Loads Arrow, which --help need not wait for.
    from firesteel.state_processor import Savepoint

    savepoint = Savepoint.load(options.path)
    uids = savepoint.operators() if options.operator is None else [_uid(savepoint, options.operator)]
    found = [_operator(savepoint, uid, options) for uid in uids]
    if options.operator is None:
        # What has neither state nor a position has nothing to show.
        found = [one for one in found if one["states"] or one["position"] is not None]
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    print(f"Savepoint of {savepoint.job!r}, taken {moment(savepoint.created)}: {savepoint.path}")
    for one in found:
        print("\n" + "\n".join(_lines(one)))
    return 0


def _uid(savepoint: Savepoint, wanted: str) -> str:
    uids = savepoint.operators()
    if wanted in uids:
        return wanted
    matching = [uid for uid in uids if uid.startswith(wanted) or savepoint.operator_name(uid) == wanted]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(f"{uid} ({savepoint.operator_name(uid)})" for uid in matching or uids)
    what = "several operators" if matching else "no operator"
    raise SavepointError(f"The savepoint has {what} {wanted!r}. {'Say which' if matching else 'It has'}: {known}.")


def _operator(savepoint: Savepoint, uid: str, options: argparse.Namespace) -> dict[str, Any]:
    states = [state for state in savepoint.states() if state.uid == uid]
    if options.state is not None:
        names = ", ".join(repr(state.name) for state in states) or "none"
        states = [state for state in states if state.name == options.state]
        if not states:
            raise SavepointError(f"Operator {uid!r} has no state {options.state!r}. It has: {names}.")
    return {
        "uid": uid,
        "name": savepoint.operator_name(uid),
        "meaning": savepoint.meaning(uid),
        "watermark": savepoint.watermark(uid),
        "position": savepoint.position(uid),
        "positions": savepoint.read_position(uid).to_pylist(),
        "states": [_state(savepoint, state, options) for state in states],
    }


def _state(savepoint: Savepoint, state: StateInfo, options: argparse.Namespace) -> dict[str, Any]:
    columns = savepoint.columns(state.uid, state.name)
    shown: dict[str, Any] = {
        "name": state.name,
        "kind": state.kind,
        "type": state.type,
        "meaning": state.meaning,
        "stored": state.rows,
        "columns": [{"name": one.name, "type": one.type, "role": one.role} for one in columns],
    }
    if options.operator is not None:
        # What is not declared is pickled: only plain values of that are loaded.
        from firesteel.cluster.state_browser import state_rows

        rows = state_rows(savepoint, state.uid, state.name, options.key, 0, options.limit)
        shown |= {"titles": rows.columns, "rows": rows.rows, "matching": rows.matching}
    return shown


def _lines(one: dict[str, Any]) -> list[str]:
    lines = [f"{one['name']}  (uid {one['uid']})"]
    if one["meaning"] and one["meaning"] != one["name"]:
        lines.append(f"  {one['meaning']}")
    if one["positions"]:
        texts = [[str(value) for value in row.values()] for row in one["positions"]]
        lines += ["", "  how far it was read"]
        lines += [f"    {line}" for line in table(list(one["positions"][0]), texts)]
    for state in one["states"]:
        what = state["meaning"] or f"{state['kind']} state of {state['type']}"
        lines += ["", f"  {state['name']}: {what} ({state['stored']:,} stored)"]
        lines += [f"    {line}" for line in (_rows(state) if "rows" in state else _columns(state))]
    return lines


def _columns(state: dict[str, Any]) -> list[str]:
    columns = state["columns"]
    return list(table(["column", "type", "of"], [list(one.values()) for one in columns])) if columns else []


def _rows(state: dict[str, Any]) -> list[str]:
    texts = [["NULL" if value is None else str(value) for value in row] for row in state["rows"]]
    kinds = {column["name"]: column["type"] for column in state["columns"]}
    titles = [f"{title} {kinds[title]}" if title in kinds else title for title in state["titles"]]
    numbers = [at for at in range(len(titles)) if any(isinstance(row[at], int | float) for row in state["rows"])]
    left = state["matching"] - len(texts)
    return [*table(titles, texts, right=numbers), *([f"… {left:,} more rows"] if left > 0 else [])]
