"""What the examples of patterns print, to the letter."""

from __future__ import annotations

import re
from typing import Any

import pytest

EXPECTED = {
    "cep_fraud.py": ["card 1111: 0.5 and then 700.0"],
    "cep_logins.py": ["bob failed at seconds [3, 5, 9]"],
    "cep_temperature_alarm.py": [
        "alarm rack-1: 103.5 degrees, then 105.5",
        "warning rack-1: 105.5 degrees, and no more",
        "warning rack-2: 102.5 degrees, and no more",
    ],
    "cep_orders.py": [
        "order 1 is paid in minute 9",
        "order 2 is cancelled in minute 18",
        "order 3 is cancelled in minute 27",
        "order 4 is cancelled in minute 55",
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints(name: str, run: Any) -> None:
    assert sorted(re.sub(r"^\d+> ", "", line) for line in run(name)) == EXPECTED[name]
