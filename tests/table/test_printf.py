"""PRINTF: rules of Java's Formatter. What PyFlink gives is in ``test_function_matrix``."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.table.functions.printf import formatted


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("%.1f", 0.25, "0.3"),
        ("%.0f", 0.5, "1"),
        ("%.2f", -0.0, "-0.00"),
        ("%,.1f", 1234567.25, "1,234,567.3"),
        ("%(,.2f", -1234.5, "(1,234.50)"),
        ("%f", float("inf"), "Infinity"),
        ("%e", 0.0, "0.000000e+00"),
        ("%.2e", 9.999, "1.00e+01"),
        ("%E", 0.00012, "1.200000E-04"),
        ("%g", 123456.789, "123457"),
        ("%g", 1234567.0, "1.23457e+06"),
        ("%x", (-1, 32), "ffffffff"),
        ("%X", (-1, 64), "F" * 16),
        ("%06d", (-42, 32), "-00042"),
        ("%-6d|", (-42, 32), "-42   |"),
        ("%#o", (8, 32), "010"),
        ("%B", True, "TRUE"),
        ("%b", None, "false"),
        ("%5.2s|", "abc", "   ab|"),
        ("100%%", None, "100%"),
        ("%.2d", (1, 32), None),
        ("%D", (1, 32), None),
        ("%", "a", None),
        ("%2$s", "a", None),
    ],
)
def test_as_java_writes_it(text: str, value: Any, expected: str | None) -> None:
    assert formatted(text, value) == expected
