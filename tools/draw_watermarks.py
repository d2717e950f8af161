"""Draws ``docs/images/watermarks.svg``: how a watermark crosses a micro-batch.

.venv/bin/python tools/draw_watermarks.py
"""

from pathlib import Path

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "images" / "watermarks.svg"

DELAY = 2
SIZE = 10
BATCHES = [[[3, 9, 6], [8, 12, 11]], [[19, 14, 24], [27, 21, 35]]]
"""The event times of the records of each step of each batch, in seconds, in the order they come."""

WIDTH, LEFT, STEP = 900, 122, 190
STYLE = """
    text { fill: #0f172a }
    .s { font-size: 12px; fill: #475569 }
    .c { text-anchor: middle }
    .w { font-size: 12.5px }
    .h { font-weight: 600 }
    .batch { fill: #f8fafc; stroke: #94a3b8; stroke-width: 1.5 }
    .step { stroke: #cbd5e1 }
    .record { fill: #e0f2fe; stroke: #0284c7 }
    .mark { fill: #fef9c3; stroke: #ca8a04 }
    .window { fill: #ffedd5; stroke: #ea580c }
    .fired { fill: #dcfce7; stroke: #16a34a }
    .line { stroke: #94a3b8; stroke-dasharray: 4 4 }
"""


def text(x: float, y: float, content: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{content}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, label: str = "") -> str:
    shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{kind}"/>'
    small = " w" if len(label) > 12 else ""
    return shape + (text(x + width / 2, y + height / 2 + 5, label, f"c{small}") if label else "")


Step = tuple[list[int], int, int, list[tuple[int, list[int]]], dict[int, list[int]]]
"""Records, the highest time so far, the watermark behind them, the windows that fire, those that stay open."""


def simulate() -> list[list[Step]]:
    """Per batch what its steps do."""
    windows: dict[int, list[int]] = {}
    highest, batches = 0, []
    for steps in BATCHES:
        batches.append([])
        for records in steps:
            for moment in records:
                windows.setdefault(moment - moment % SIZE, []).append(moment)
            highest = max([highest, *records])
            # In seconds; in milliseconds it is one millisecond less.
            watermark = highest - DELAY
            fired = [(start, windows.pop(start)) for start in sorted(windows) if start + SIZE <= watermark]
            left = {start: list(contents) for start, contents in windows.items()}
            batches[-1].append((records, highest, watermark, fired, left))
    return batches


def draw_step(x: float, step: Step) -> list[str]:
    records, highest, watermark, fired, left = step
    parts = [box(x + 8 + index * 38, 88, 34, 30, "record", str(moment)) for index, moment in enumerate(records)]
    parts.append(box(x + 124, 88, 56, 30, "mark", f"W {watermark}"))
    parts.append(text(x + 8, 138, f"behind them: {highest} - {DELAY}", "s"))
    y = 168
    for kind, ending, found in (("fired", " fires", fired), ("window", "", list(left.items()))):
        for start, contents in found:
            label = f"[{start}, {start + SIZE}): {' '.join(map(str, contents))}{ending}"
            parts.append(box(x + 8, y, STEP - 18, 30, kind, label))
            y += 38
    return parts


def draw() -> str:
    parts = [
        text(20, 28, f"Records with their event times, a delay of {DELAY} s, windows of {SIZE} s", "h"),
        text(20, 92, "stage 0", "h"),
        text(20, 110, "reads, assigns", "s"),
        text(20, 126, "timestamps", "s"),
        text(20, 190, "stage 1", "h"),
        text(20, 208, "keyed windows", "s"),
    ]
    x = float(LEFT)
    for number, steps in enumerate(simulate(), 1):
        width = STEP * len(steps) - 2
        parts.append(text(x + width / 2, 56, f"micro-batch {number}", "c h"))
        parts.append(box(x, 66, width, 188, "batch"))
        parts.append(f'<line x1="{x:g}" y1="152" x2="{x + width:g}" y2="152" class="line"/>')
        for place, step in enumerate(steps):
            if place:
                parts.append(
                    f'<line x1="{x + place * STEP - 2:g}" y1="66" x2="{x + place * STEP - 2:g}" y2="254" class="step"/>'
                )
            parts += draw_step(x + place * STEP, step)
        x += STEP * len(steps) + 4
    captions = (
        "W is the watermark. It moves after every step of a batch, some twenty in a full one; windows fire there.",
        "6 cannot be late to 9, which is in its own step. 8 comes a step later: the delay saves it.",
    )
    parts += [text(LEFT, 280 + 18 * line, caption, "s") for line, caption in enumerate(captions)]
    body = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 316" role="img" aria-labelledby="t" \
font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="14">
  <title id="t">How a watermark crosses a micro-batch</title>
  <style>{STYLE}  </style>
  <rect width="{WIDTH}" height="316" fill="#ffffff"/>
  {body}
</svg>
"""


if __name__ == "__main__":
    IMAGE.write_text(draw())
