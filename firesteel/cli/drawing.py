"""A plan as a picture: a tree for the terminal, Mermaid for pages, SVG for everything else."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["as_mermaid", "as_svg", "as_tree"]

Plan = Mapping[str, Any]


def _nodes(plan: Plan) -> dict[int, Mapping[str, Any]]:
    return {node["id"]: node for node in plan["nodes"]}


def _readers(plan: Plan) -> dict[int, list[tuple[int, str]]]:
    """By operator those that it feeds, and how records get there."""
    found: dict[int, list[tuple[int, str]]] = {node["id"]: [] for node in plan["nodes"]}
    for node in plan["nodes"]:
        for before in node.get("predecessors", ()):
            found[before["id"]].append((node["id"], before["ship_strategy"]))
    return found


def _label(node: Mapping[str, Any]) -> str:
    return f"{node['type']} ×{node['parallelism']}"


def as_tree(plan: Plan) -> str:
    """From each source down. An operator with several inputs is drawn below the first, and named below the others.

    >>> plan = {"nodes": [
    ...     {"id": 1, "type": "Source: numbers", "parallelism": 1},
    ...     {"id": 2, "type": "count", "parallelism": 2, "predecessors": [{"id": 1, "ship_strategy": "HASH"}]},
    ...     {"id": 3, "type": "Sink: Print", "parallelism": 2, "predecessors": [{"id": 2, "ship_strategy": "FORWARD"}]},
    ... ]}
    >>> print(as_tree(plan))
    Source: numbers ×1
    └─ HASH ─ count ×2
       └─ Sink: Print ×2
    """
    nodes, readers = _nodes(plan), _readers(plan)
    drawn: set[int] = set()

    def below(number: int, indent: str) -> Iterator[str]:
        found = readers[number]
        for place, (reader, strategy) in enumerate(found):
            last = place == len(found) - 1
            way = "" if strategy == "FORWARD" else f"{strategy} ─ "
            again = reader in drawn
            yield f"{indent}{'└─' if last else '├─'} {way}{_label(nodes[reader])}{' (above)' if again else ''}"
            if not again:
                drawn.add(reader)
                yield from below(reader, indent + ("   " if last else "│  "))

    lines: list[str] = []
    for node in plan["nodes"]:
        if not node.get("predecessors"):
            lines += [_label(node), *below(node["id"], "")]
    return "\n".join(lines)


def as_mermaid(plan: Plan) -> str:
    """A flow chart, with a box for each stage.

    >>> print(as_mermaid({"nodes": [{"id": 1, "type": "a \\"b\\"", "parallelism": 1, "stage": 0}]}))
    flowchart LR
      subgraph stage0 [stage 0]
        n1["a #quot;b#quot; ×1"]
      end
    """
    lines = ["flowchart LR"]
    for stage, members in _by_stage(plan):
        lines.append(f"  subgraph stage{stage} [stage {stage}]")
        lines += [f'    n{node["id"]}["{_mermaid(_label(node))}"]' for node in members]
        lines.append("  end")
    for node in plan["nodes"]:
        for before in node.get("predecessors", ()):
            way = "" if before["ship_strategy"] == "FORWARD" else f"|{before['ship_strategy']}|"
            lines.append(f"  n{before['id']} -->{way} n{node['id']}")
    return "\n".join(lines)


def _mermaid(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")


def _by_stage(plan: Plan) -> list[tuple[int, list[Mapping[str, Any]]]]:
    found: dict[int, list[Mapping[str, Any]]] = {}
    for node in plan["nodes"]:
        found.setdefault(node.get("stage", 0), []).append(node)
    return sorted(found.items())


_WIDTH, _HEIGHT, _GAP, _ROW = 220, 44, 90, 70


def as_svg(plan: Plan) -> str:
    """A drawing without scripts, with colours that fit a dark page as well as a light one."""
    columns = _columns(plan)
    places = {
        node["id"]: (20 + column * (_WIDTH + _GAP), 20 + row * _ROW)
        for column, members in enumerate(columns)
        for row, node in enumerate(members)
    }
    width = 40 + len(columns) * (_WIDTH + _GAP) - _GAP
    height = 40 + max(len(members) for members in columns) * _ROW - (_ROW - _HEIGHT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#7a869a"/></marker></defs>',
    ]
    for node in plan["nodes"]:
        x, y = places[node["id"]]
        for before in node.get("predecessors", ()):
            from_x, from_y = places[before["id"]]
            start, end = (from_x + _WIDTH, from_y + _HEIGHT / 2), (x, y + _HEIGHT / 2)
            middle = (start[0] + end[0]) / 2
            parts.append(
                f'<path d="M{start[0]},{start[1]} C{middle},{start[1]} {middle},{end[1]} {end[0]},{end[1]}" '
                'fill="none" stroke="#7a869a" marker-end="url(#end)"/>'
            )
            if before["ship_strategy"] != "FORWARD":
                label = html.escape(before["ship_strategy"])
                parts.append(
                    f'<text x="{middle}" y="{(start[1] + end[1]) / 2 - 6}" text-anchor="middle" fill="#7a869a" '
                    f'font-size="11">{label}</text>'
                )
    colours = {"Data Source": "#1f7a4d", "Data Sink": "#8a4b08"}
    for node in plan["nodes"]:
        x, y = places[node["id"]]
        colour = colours.get(node.get("pact", ""), "#2c5aa0")
        name = node["type"] if len(node["type"]) <= 26 else f"{node['type'][:25]}…"
        parts.append(
            f'<g><title>{html.escape(_label(node))}</title><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" '
            f'rx="6" fill="{colour}"/><text x="{x + 10}" y="{y + 19}" fill="#fff">{html.escape(name)}</text>'
            f'<text x="{x + 10}" y="{y + 35}" fill="#fff" font-size="11">parallelism {node["parallelism"]}, stage '
            f"{node.get('stage', 0)}</text></g>"
        )
    return "\n".join([*parts, "</svg>"])


def _columns(plan: Plan) -> Sequence[Sequence[Mapping[str, Any]]]:
    """Operators by how far they are from a source."""
    depth: dict[int, int] = {}
    for node in plan["nodes"]:
        depth[node["id"]] = max((depth[before["id"]] + 1 for before in node.get("predecessors", ())), default=0)
    return [
        [node for node in plan["nodes"] if depth[node["id"]] == one]
        for one in range(max(depth.values(), default=0) + 1)
    ]
