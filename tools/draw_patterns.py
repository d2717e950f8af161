"""Draws ``docs/images/contiguity.svg`` and ``docs/images/skipping.svg`` with what the matcher finds.

.venv/bin/python tools/draw_patterns.py
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from firesteel.cep import AfterMatchSkipStrategy, Pattern
from firesteel.cep.automaton import compile_pattern
from firesteel.cep.matching import Matcher

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
LEFT, GAP, ROW = 300, 78, 34
STYLE = """
    text { fill: #0f172a; font: 14px sans-serif }
    .c { text-anchor: middle }
    .code { font-family: monospace; font-size: 13px }
    .s { font-size: 12px; fill: #475569 }
    .event { fill: #e0f2fe; stroke: #0284c7 }
    .line { stroke: #cbd5e1 }
    .match { stroke: #16a34a; stroke-width: 2 }
    .taken { fill: #16a34a }
"""


def is_a(letter: str) -> Callable[[Any], bool]:
    return lambda event: bool(event[0] == letter)


def matches(pattern: Pattern, events: list[str]) -> list[list[int]]:
    """The places of the events of each match."""
    matcher = Matcher(compile_pattern(pattern), pattern.skip_strategy)
    runs = matcher.initial()
    found = [match for place, event in enumerate(events) for match in matcher.process(runs, (*event, place), place)]
    return [[event[-1] for taken in match.values() for event in taken] for match in found]


def draw(events: list[str], patterns: list[tuple[str, Pattern]]) -> str:
    width = LEFT + GAP * len(events)
    parts, y = [], 34
    for place, event in enumerate(events):
        x = LEFT + place * GAP
        parts.append(f'<circle cx="{x}" cy="{y}" r="17" class="event"/>')
        parts.append(f'<text x="{x}" y="{y + 5}" class="c">{event}</text>')
    y += 44
    for label, pattern in patterns:
        parts.append(f'<line x1="12" y1="{y - 14}" x2="{width - 30}" y2="{y - 14}" class="line"/>')
        parts.append(f'<text x="16" y="{y + 9}" class="code">{label}</text>')
        found = matches(pattern, events)
        if not found:
            parts.append(f'<text x="{LEFT - 16}" y="{y + 9}" class="s">no match</text>')
        for taken in found or [[]]:
            xs = [LEFT + place * GAP for place in taken]
            if xs:
                parts.append(f'<line x1="{xs[0]}" y1="{y + 5}" x2="{xs[-1]}" y2="{y + 5}" class="match"/>')
            parts.extend(f'<circle cx="{x}" cy="{y + 5}" r="6" class="taken"/>' for x in xs)
            y += ROW - 8
        y += 12
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{y}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def main() -> None:
    def start() -> Pattern:
        return Pattern.begin("a").where(is_a("a"))

    contiguity = [
        ("begin(a).next(b)", start().next("b").where(is_a("b"))),
        ("begin(a).followed_by(b)", start().followed_by("b").where(is_a("b"))),
        ("begin(a).followed_by_any(b)", start().followed_by_any("b").where(is_a("b"))),
    ]
    (IMAGES / "contiguity.svg").write_text(draw(["a1", "c1", "b1", "b2"], contiguity))

    strategies = [
        AfterMatchSkipStrategy.no_skip(),
        AfterMatchSkipStrategy.skip_to_next(),
        AfterMatchSkipStrategy.skip_past_last_event(),
        AfterMatchSkipStrategy.skip_to_first("b"),
        AfterMatchSkipStrategy.skip_to_last("b"),
    ]
    skipping = []
    for strategy in strategies:
        pattern = Pattern.begin("b", strategy).where(is_a("b")).one_or_more().next("c").where(is_a("c"))
        skipping.append((f"{strategy.kind}({strategy.step or ''})", pattern))
    (IMAGES / "skipping.svg").write_text(draw(["b1", "b2", "b3", "c1"], skipping))


if __name__ == "__main__":
    main()
