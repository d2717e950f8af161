"""Draws ``docs/images/watermarks.svg``: how a watermark crosses a micro-batch.

.venv/bin/python tools/draw_watermarks.py
"""

from pathlib import Path

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "images" / "watermarks.svg"

DELAY = 2
SIZE = 10
BATCHES = [[3, 9, 6], [8, 12, 11], [19, 14, 24]]
"""The event times of each batch's records, in seconds, in the order they come."""

WIDTH, LEFT, STEP = 900, 130, 62
STYLE = """
    text { fill: #0f172a }
    .s { font-size: 12px; fill: #475569 }
    .c { text-anchor: middle }
    .h { font-weight: 600 }
    .batch { fill: #f8fafc; stroke: #94a3b8; stroke-width: 1.5 }
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
    return shape + (text(x + width / 2, y + height / 2 + 5, label, "c") if label else "")


def simulate() -> list[tuple[list[int], int, list[tuple[int, list[int]]], dict[int, list[int]]]]:
    """Per batch: its records, the watermark behind them, the windows that fire, and those that stay open."""
    windows: dict[int, list[int]] = {}
    highest, batches = 0, []
    for records in BATCHES:
        for moment in records:
            windows.setdefault(moment - moment % SIZE, []).append(moment)
        highest = max([highest, *records])
        # In seconds; in milliseconds it is one millisecond less.
        watermark = highest - DELAY
        fired = [(start, windows.pop(start)) for start in sorted(windows) if start + SIZE <= watermark]
        batches.append((records, watermark, fired, {start: list(contents) for start, contents in windows.items()}))
    return batches


def draw() -> str:
    parts = [
        text(20, 28, f"Records with their event times, a delay of {DELAY} s, windows of {SIZE} s", "h"),
        text(20, 92, "stage 0", "h"),
        text(20, 110, "reads, assigns", "s"),
        text(20, 126, "timestamps", "s"),
        text(20, 206, "stage 1", "h"),
        text(20, 224, "keyed windows", "s"),
    ]
    x = float(LEFT)
    for number, (records, watermark, fired, left) in enumerate(simulate(), 1):
        width = STEP * 4 - 8
        parts.append(text(x + width / 2, 56, f"micro-batch {number}", "c h"))
        parts.append(box(x, 66, width, 250, "batch"))
        for index, moment in enumerate(records):
            parts.append(box(x + 10 + index * 48, 84, 40, 32, "record", str(moment)))
        parts.append(box(x + 158, 84, 72, 32, "mark", f"W {watermark}"))
        parts.append(text(x + 10, 138, f"behind them: {max(m for b in BATCHES[:number] for m in b)} - {DELAY}", "s"))
        parts.append(f'<line x1="{x:g}" y1="152" x2="{x + width:g}" y2="152" class="line"/>')
        y = 168
        for start, contents in fired:
            label = f"[{start}, {start + SIZE}): {' '.join(map(str, contents))} fires"
            parts.append(box(x + 10, y, width - 20, 30, "fired", label))
            y += 38
        for start, contents in left.items():
            label = f"[{start}, {start + SIZE}): {' '.join(map(str, contents))}"
            parts.append(box(x + 10, y, width - 20, 30, "window", label))
            y += 38
        x += STEP * 4 + 4
    caption = "W is the watermark. It moves when a batch ends: 6 cannot be late to 9. And 8 is saved by the delay."
    parts.append(text(LEFT, 342, caption, "s"))
    body = "\n  ".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 360" role="img" aria-labelledby="t" \
font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="14">
  <title id="t">How a watermark crosses a micro-batch</title>
  <style>{STYLE}  </style>
  <rect width="{WIDTH}" height="360" fill="#ffffff"/>
  {body}
</svg>
"""


if __name__ == "__main__":
    IMAGE.write_text(draw())
