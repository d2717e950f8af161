"""A result over the whole screen, while it changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, Window

from firesteel.table.client.views import Cells, ResultView
from firesteel.table.table_result import TableResult
from firesteel.table.tableau import text_width

__all__ = ["ResultScreen", "lines_of", "show_on_screen"]

REFRESH_SECONDS = 0.25
_WIDEST = 60
_KEYS = "↑ ↓ PgUp PgDn Home End ← →   q ends the query"


def show_on_screen(result: TableResult, view: ResultView) -> None:
    """Shows a result until the user has seen enough. What has failed is raised when the screen is as before."""
    ResultScreen(result, view).run()


class ResultScreen:
    """Takes changes in a thread of its own, and draws what there is a few times a second."""

    def __init__(self, result: TableResult, view: ResultView, **terminal: Any) -> None:
        self._result, self._view = result, view
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._closing = False
        self._changes = 0
        self._top = 0
        self._left = 0
        self._follows = True
        self._height = 1
        body = Window(FormattedTextControl(self._text), wrap_lines=False, always_hide_cursor=True)
        bar = Window(FormattedTextControl(self._bar), height=1, style="reverse", always_hide_cursor=True)
        self.application: Application[None] = Application(
            Layout(HSplit([body, bar])),
            key_bindings=self._bindings(),
            full_screen=True,
            refresh_interval=REFRESH_SECONDS,
            **terminal,
        )

    def run(self) -> None:
        """Returns when the user ends it."""
        taking = threading.Thread(target=self._take, name="firesteel-sql-result", daemon=True)
        try:
            # Once it runs: a query that fails at once has something to end.
            self.application.run(pre_run=taking.start)
        finally:
            self._closing = True
            # The thread that takes rows waits for them; this ends that, too.
            self._result.close()
            if taking.ident is not None:
                taking.join()
        if self._failure is not None:
            raise self._failure

    def _take(self) -> None:
        try:
            for change in self._result.changes():
                with self._lock:
                    self._view.apply(change)
                    self._changes += 1
        except BaseException as error:
            # A query that the user has ended may say so.
            if not self._closing:
                self._failure = error
                loop = self.application.loop
                assert loop is not None
                loop.call_soon_threadsafe(self._exit)
        finally:
            self._over.set()

    def _exit(self) -> None:
        # Not twice: the user may have pressed a key just now.
        if self.application.future is not None and not self.application.future.done():
            self.application.exit()

    # What is drawn.

    def _rows(self) -> list[Cells]:
        with self._lock:
            return self._view.rows()

    def _text(self) -> StyleAndTextTuples:
        size = self.application.output.get_size()
        self._height = max(1, size.rows - 3)
        rows = self._rows()
        last = max(0, len(rows) - self._height)
        self._top = last if self._follows else min(self._top, last)
        shown = lines_of(self._view.names, rows[self._top : self._top + self._height])
        return [("", "\n".join(line[self._left :] for line in shown))]

    def _bar(self) -> str:
        rows = self._rows()
        end = min(len(rows), self._top + self._height)
        state = "finished" if self._over.is_set() else "running"
        place = f"rows {self._top + 1} to {end} of {len(rows)}" if rows else "no rows"
        return f" {state}: {place}, {self._changes} changes   {_KEYS}"

    # Keys.

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        def on(*keys: str, rows: Any = None, columns: int = 0) -> None:
            def move(event: Any) -> None:
                self._left = max(0, self._left + columns)
                if rows is not None:
                    self._move(rows())

            for key in keys:
                bindings.add(key)(move)

        for key in ("q", "Q", "c-c", "c-d", "escape"):
            bindings.add(key)(lambda event: self._exit())
        on("up", rows=lambda: self._top - 1)
        on("down", rows=lambda: self._top + 1)
        on("pageup", rows=lambda: self._top - self._height)
        on("pagedown", rows=lambda: self._top + self._height)
        on("home", rows=lambda: 0)
        on("end", rows=lambda: len(self._rows()))
        on("left", columns=-20)
        on("right", columns=20)
        return bindings

    def _move(self, top: int) -> None:
        last = max(0, len(self._rows()) - self._height)
        self._top = min(max(0, top), last)
        # At the end it stays at the end while rows come.
        self._follows = self._top == last


def lines_of(names: Sequence[str], rows: Sequence[Cells]) -> list[str]:
    """Names and rows in columns as wide as they need.

    >>> lines_of(["city", "n"], [("Rome", "12"), ("東京", "1")])
    ['city   n', 'Rome  12', '東京   1']
    """
    cut = [tuple(_cut(cell) for cell in row) for row in (tuple(names), *rows)]
    widths = [max(map(text_width, column)) for column in zip(*cut, strict=True)]
    numbers = [all(_is_number(row[index]) for row in rows) for index in range(len(widths))]
    lines = []
    for row in cut:
        cells = [
            " " * (width - text_width(cell)) + cell if right else cell + " " * (width - text_width(cell))
            for cell, width, right in zip(row, widths, numbers, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit() or text == "<NULL>"


def _cut(text: str) -> str:
    flat = " ".join(text.splitlines())
    return flat if len(flat) <= _WIDEST else f"{flat[: _WIDEST - 1]}…"
