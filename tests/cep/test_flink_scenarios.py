"""The matcher against Flink's own: every scenario that was recorded there, in the same order and at the same times."""

from __future__ import annotations

import pytest
from cepkit import Json, by_output, pattern_of, recorded, results_of, run, run_on_stream, wakes_otherwise

from firesteel.cep import MalformedPatternError
from firesteel.cep.automaton import compile_pattern

BY_HAND = recorded("by_hand.json.gz")
ACCEPTED = [one for one in BY_HAND if "refused" not in one["result"]]
REFUSED = [one for one in BY_HAND if "refused" in one["result"]]


def _name(scenario: Json) -> str:
    name: str = scenario["name"]
    return name


@pytest.mark.parametrize("scenario", ACCEPTED, ids=_name)
def test_by_hand(scenario: Json) -> None:
    assert results_of(run(scenario)) == results_of(scenario["result"])


@pytest.mark.parametrize("scenario", REFUSED, ids=_name)
def test_what_flink_refuses_is_refused(scenario: Json) -> None:
    with pytest.raises(MalformedPatternError):
        compile_pattern(pattern_of(scenario["pattern"]))


def test_random_scenarios() -> None:
    different = [one["name"] for one in recorded("random.json.gz") if results_of(run(one)) != results_of(one["result"])]
    assert different == []


def test_random_patterns_that_flink_refuses() -> None:
    accepted = []
    for scenario in recorded("refused.json.gz"):
        try:
            compile_pattern(pattern_of(scenario["pattern"]))
        except MalformedPatternError:
            continue
        accepted.append(scenario["name"])
    assert accepted == []


@pytest.mark.parametrize(("stored", "each"), [(False, 5), (True, 10)], ids=["one micro-batch", "many micro-batches"])
def test_on_streams(stored: bool, each: int) -> None:
    """The operator as well: what waits, when it wakes, and, between micro-batches, what is stored."""
    tried, different = 0, []
    for scenario in [*ACCEPTED, *recorded("random.json.gz")[::each]]:
        can_be_empty = compile_pattern(pattern_of(scenario["pattern"])).can_be_empty
        if "error" not in scenario["result"] and not wakes_otherwise(scenario) and not can_be_empty:
            tried += 1
            if run_on_stream(scenario, stored) != by_output(scenario["result"]):
                different.append(scenario["name"])
    assert tried > 400
    assert different == []


@pytest.mark.parametrize("quantifier", ["one_or_more", "times_or_more"])
def test_a_loop_over_nothing_is_refused(quantifier: str) -> None:
    """Flink accepts it, and runs out of memory at the first event. So it cannot be recorded."""
    step = {"how": "followed_by", "group": [{"how": "begin", "name": "b", "optional": True}]}
    step["quantifier"] = [quantifier, 2][: 1 + (quantifier == "times_or_more")]
    with pytest.raises(MalformedPatternError, match="all its steps may be left out"):
        compile_pattern(pattern_of({"steps": [{"how": "begin", "name": "a"}, step]}))
    compile_pattern(pattern_of({"steps": [{"how": "begin", "name": "a"}, step | {"quantifier": ["times", 2]}]}))
