"""Draws ``docs/images/latency.svg``: what a record waits for, to scale.

.venv/bin/python tools/draw_latency.py
"""

from pathlib import Path

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "images" / "latency.svg"

PARTS = [
    ("offset", "positions, logged", 8, "log"),
    ("plan", "Spark plans the query", 42, "plan"),
    ("stage 0", "read, map, frames", 70, "task"),
    ("stage 1", "state, functions, store", 194, "keyed"),
    ("driver", "collect, print, sinks' log", 76, "driver"),
    ("commit", "the batch is logged", 2, "log"),
]
"""The parts of a micro-batch with one keyed stage: name, what happens, milliseconds, colour. Their proportions are
measured; see docs/latency.md."""

WIDTH, LEFT, TOP, HEIGHT = 900, 20, 96, 44
STYLE = """
    text { fill: #0f172a }
    .s { font-size: 12px; fill: #475569 }
    .c { text-anchor: middle }
    .e { text-anchor: end }
    .h { font-weight: 600 }
    .wait { fill: #f1f5f9; stroke: #94a3b8; stroke-dasharray: 4 4 }
    .log { fill: #fef9c3; stroke: #ca8a04 }
    .plan { fill: #f8fafc; stroke: #94a3b8 }
    .task { fill: #e0f2fe; stroke: #0284c7 }
    .keyed { fill: #ffedd5; stroke: #ea580c }
    .driver { fill: #dcfce7; stroke: #16a34a }
    .line { stroke: #475569; stroke-width: 1.5 }
"""


def text(x: float, y: float, content: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{content}</text>'


def box(x: float, y: float, width: float, kind: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{HEIGHT}" class="{kind}"/>'


def arrow(x: float, label: str) -> list[str]:
    return [
        f'<line x1="{x:g}" y1="{TOP - 22}" x2="{x:g}" y2="{TOP - 2}" class="line"/>',
        text(x, TOP - 28, label, "s" if x < WIDTH / 2 else "e s"),
    ]


def draw() -> str:
    batch = sum(spent for _, _, spent, _ in PARTS)
    scale = (WIDTH - 2 * LEFT) / (1.5 * batch)
    x = LEFT + batch / 2 * scale
    parts = [
        text(LEFT, 28, "A record waits for the batch before, on average half of it, and for its own", "h"),
        box(LEFT, TOP, batch / 2 * scale, "wait"),
        text(LEFT + batch / 4 * scale, TOP + 27, "the batch before", "c s"),
        *arrow(LEFT + 8, "it comes"),
    ]
    below = TOP + HEIGHT + 24
    for number, (name, what, spent, kind) in enumerate(PARTS):
        width = spent * scale
        parts.append(box(x, TOP, width, kind))
        if width > 48:
            parts.append(text(x + width / 2, TOP + 27, name, "c"))
        column, line = LEFT + number % 3 * 290, below + number // 3 * 30
        parts.append(f'<rect x="{column}" y="{line - 11}" width="14" height="14" class="{kind}"/>')
        parts.append(text(column + 20, line, f"{name}: {what} ({100 * spent / batch:.0f}%)", "s"))
        if name == "driver":
            parts += arrow(x + width, "its result is there")
        x += width
    body = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 216" role="img" aria-labelledby="t" \
font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="14">
  <title id="t">What a record waits for</title>
  <style>{STYLE}  </style>
  <rect width="{WIDTH}" height="216" fill="#ffffff"/>
  {body}
</svg>
"""


if __name__ == "__main__":
    IMAGE.write_text(draw())
