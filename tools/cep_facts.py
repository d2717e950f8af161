"""Scenarios for complex event processing: facts about how Flink matches that its documentation does not tell.

``tools/record_cep.py`` has Flink say what comes out of them.
"""

from __future__ import annotations

from cep_writing import (
    LOOP,
    PAST_LAST,
    SKIPS,
    TO_NEXT,
    A,
    B,
    D,
    Json,
    begin,
    followed_by,
    followed_by_any,
    not_followed_by,
    not_next,
    scenario,
    then,
)

__all__ = ["scenarios"]


def scenarios() -> list[Json]:
    """All of them."""
    return [
        *_order(),
        *_time(),
        *_processing_time(),
        *_loops(),
        *_nots(),
    ]


def _order() -> list[Json]:
    longest = [begin("a", quantifier=LOOP), followed_by_any("b", quantifier=LOOP, allow_combinations=True)]
    return [
        scenario("order: matches that began with one event", longest, "a1 a2 b1 a3 b2 b3 end"),
        *(scenario(f"order: the tie and {skip['kind']}", longest, "a1 a2 b1 a3 b2 b3 end", skip) for skip in SKIPS),
        scenario(
            "order: when time advances, matches go out before timeouts",
            [begin("a"), followed_by("b", quantifier=LOOP), not_followed_by("c", within=5)],
            "a1@1 b1@2 d1@3 a2@3 d1@4 w20 end",
        ),
        scenario(
            "order: freed matches go out before timeouts",
            [begin("s", where=[{"below": 3}]), followed_by("b", within=5)],
            "a1@1 a2@2 b9@3 a1@4 w8 end",
            TO_NEXT,
        ),
        scenario(
            "order: steps by first appearance",
            [
                begin(
                    [begin("a", optional=True), followed_by("b", optional=True), followed_by("c")],
                    quantifier=["times", 2],
                )
            ],
            "c1 a1 b1 c2 a2 c3 b2 c4 end",
        ),
    ]


def _time() -> list[Json]:
    pair = [begin("a"), followed_by("b", within=10)]
    loop = [begin("a"), followed_by("b", quantifier=LOOP), followed_by("c", within=10)]
    previous = [begin("a"), followed_by("b", within_previous=4), followed_by("c", within_previous=4)]
    return [
        scenario("late: at the watermark or before it", pair, "a1@1 w5 a2@5 a3@4 b1@6 end"),
        scenario("sorted: events wait for the watermark", pair, "b1@3 a1@1 b2@2 w1 w3 end"),
        scenario(
            "sorted: equal times keep the order of arrival", [begin("a", quantifier=["times", 2])], "a2@1 a1@1 a3@1 end"
        ),
        scenario(
            "sorted: equal times by the comparator",
            [begin("a", quantifier=["times", 2])],
            "a2@1 a3@1 a1@1 end",
            comparator=True,
        ),
        scenario(
            "sorted: the comparator leaves ties",
            [begin("s", where=None, quantifier=["times", 2])],
            "b2@1 a2@1 c1@1 end",
            comparator=True,
        ),
        scenario("within: the last moment", pair, "a1@1 b1@10 end"),
        scenario("within: exclusive", pair, "a1@1 b1@11 end"),
        scenario("within: without a handler of timeouts", pair, "a1@1 b1@11 end", timeouts=False),
        scenario("timeout: when the watermark reaches it", pair, "a1@1 w10 a2@11 w11 w30 end"),
        scenario("timeout: while a later event of the key is processed", pair, "a1@1 a2@15 w20 end"),
        scenario("timeout: another key's events do not matter", pair, "x:a1@1 y:a2@15 w10 y:b1@16 w16 end"),
        scenario("timeout: keys of their own", pair, "x:a1@1 y:a2@2 x:b1@3 y:b2@4 x:a3@5 w14 w15 end"),
        scenario(
            "within: the smallest of all steps",
            [begin("a", within=5), followed_by("b", within=10), followed_by("c")],
            "a1@1 b1@3 c1@6 a2@7 b2@8 c2@11 end",
        ),
        scenario(
            "end of input: a trailing not carries the end of time",
            [begin("a"), not_followed_by("b", within=10)],
            "a1@1 end",
        ),
        scenario(
            "time of a match: freed by an advance", [begin("a"), not_followed_by("b", within=10)], "a1@1 w5 w17 end"
        ),
        scenario(
            "time of a match: freed by the next event",
            [begin("a"), not_followed_by("b", within=10)],
            "a1@1 c1@14 w20 end",
        ),
        scenario(
            "timeout: an emitted match that can grow",
            [begin("a"), followed_by("b", quantifier=LOOP, within=10)],
            "a1@1 b1@2 b2@4 w30 end",
        ),
        scenario(
            "timeout: an emitted match with an optional tail",
            [begin("a"), followed_by("b", optional=True, within=10)],
            "a1@1 w30 end",
        ),
        scenario(
            "timeout: followed_by_any waits on", [begin("a"), followed_by_any("b", within=10)], "a1@1 b1@2 w30 end"
        ),
        scenario("timeout: a loop with a step behind it", loop, "a1@1 b1@2 d1@3 b2@4 w30 end"),
        scenario("time 0: no timer", pair, "a1@0 w20 b1@21 w30 end"),
        scenario("time below 0: no timer", pair, "a1@-5 w4 w20 b1@21 w30 end"),
        scenario("previous and current: in time", previous, "a1@1 b1@4 c1@7 end"),
        scenario("previous and current: exclusive", previous, "a1@1 b1@5 c1@8 w20 end"),
        scenario("previous and current: expiry is noticed at the next event", previous, "a1@1 w20 d1@21 w22 end"),
        scenario("previous and current: expiry without another event", previous, "a1@1 w20 w30 end"),
        scenario(
            "previous and current: with a window of the whole",
            [begin("a"), followed_by("b", within_previous=4, within=10)],
            "a1@1 w6 w12 a2@13 b1@16 end",
        ),
        scenario(
            "previous and current: behind a loop",
            [begin("a", quantifier=LOOP), followed_by("b", within_previous=3)],
            "a1@1 a2@2 b1@9 a3@10 d1@11 b2@19 end",
        ),
        scenario(
            "previous and current: a trailing not",
            [begin("a"), not_followed_by("b", within_previous=5)],
            "a1@1 c1@3 c2@7 a2@8 b1@9 c3@20 end",
        ),
        *(
            scenario(f"window of a quantifier: {quantifier} {place}", steps, "c1@1 a1@3 a2@5 a3@8 a4@9 b1@13 w40 end")
            for quantifier in (LOOP, ["times", 2], ["times", 3], ["times", 1, 3], ["times_or_more", 2])
            for place, steps in (
                ("first", [begin("a", quantifier=quantifier, window=3), followed_by("b")]),
                ("last", [begin("c"), followed_by("a", quantifier=quantifier, window=3)]),
                (
                    "between",
                    [begin("c"), followed_by("a", quantifier=quantifier, window=3), followed_by("b", within=30)],
                ),
            )
        ),
    ]


def _processing_time() -> list[Json]:
    pair = [begin("a"), followed_by("b", within=10)]
    trailing = [begin("a"), not_followed_by("b", within=10)]
    clock: Json = {"time": "processing"}
    return [
        scenario("processing time: a match", pair, "p1 a1 p4 b1 p30", **clock),
        scenario("processing time: the timer fires a moment late", pair, "p1 a1 p11 p12 p30", **clock),
        scenario("processing time: an event does not wait for the timer", pair, "p1 a1 p11 b1 p30", **clock),
        scenario("processing time: a trailing not", trailing, "p1 a1 p11 p12 p13 a2 p14 b1 p40", **clock),
        scenario("processing time: the end fires nothing", trailing, "p1 a1 p5", **clock),
        scenario(
            "processing time: equal times keep the order of arrival",
            [begin("a", quantifier=["times", 2])],
            "p1 a3@1 a1@1 a2@1 p9",
            **clock,
        ),
        scenario(
            "processing time: with a comparator",
            [begin("a", quantifier=["times", 2])],
            "p1 a3@1 a1@1 a2@1 p9",
            comparator=True,
            **clock,
        ),
        scenario(
            "processing time: the comparator waits for a moment's end",
            pair,
            "p1 b1@1 a1@1 p2 b2@2 p3 p40",
            comparator=True,
            **clock,
        ),
        scenario("processing time: events of one moment differ", pair, "p1 a1@1 a2@1 b1@1 p30", TO_NEXT, **clock),
        scenario("processing time: keys", pair, "p1 x:a1@1 y:a2@1 p3 y:b1 p11 p12", **clock),
    ]


def _loops() -> list[Json]:
    low = {"where": [A, {"sum_below": ["a", 6]}]}
    rising = {"where": [A, {"above_last": "a"}]}
    return [
        scenario("loop: goes on behind a match", [begin("a", quantifier=LOOP), followed_by("b")], "a1 b1 a2 b2 end"),
        scenario(
            "loop: followed_by fixes its first event",
            [begin("c"), followed_by("a", quantifier=LOOP, allow_combinations=True)],
            "c1 a1 a2 a3 end",
        ),
        scenario(
            "loop: followed_by_any varies its first event",
            [begin("c"), followed_by_any("a", quantifier=LOOP)],
            "c1 a1 a2 a3 end",
        ),
        scenario(
            "greedy: one longest match a start",
            [begin("a", quantifier=LOOP, greedy=True), followed_by("s", where=[{"above": 0}])],
            "a1 a2 a3 b1 end",
        ),
        scenario(
            "not greedy: the same",
            [begin("a", quantifier=LOOP), followed_by("s", where=[{"above": 0}])],
            "a1 a2 a3 b1 end",
        ),
        scenario(
            "greedy: no effect on a last step",
            [begin("c"), followed_by("a", quantifier=LOOP, greedy=True)],
            "c1 a1 a2 end",
        ),
        scenario(
            "greedy: no effect on a fixed number",
            [begin("a", quantifier=["times", 2], greedy=True), followed_by("s", where=[{"above": 0}])],
            "a1 a2 a3 b1 end",
        ),
        scenario(
            "greedy: the loop goes on behind a match",
            [begin("a", quantifier=LOOP, greedy=True), followed_by("b")],
            "a1 a2 b1 a3 b2 end",
        ),
        scenario(
            "greedy: one event too many",
            [begin("a", quantifier=["times", 2, 3], greedy=True), followed_by("b")],
            "a1 a2 a3 a4 b1 end",
        ),
        scenario(
            "greedy: with until",
            [begin("a", quantifier=LOOP, greedy=True, until={"above": 3}), followed_by("s", where=[{"above": 0}])],
            "a1 a2 a5 b1 a3 b4 end",
        ),
        scenario(
            "until: the event may be the next step",
            [begin("a", quantifier=LOOP, until=B), followed_by("b")],
            "a1 a2 b1 a3 b2 end",
        ),
        scenario(
            "until: never the loop's first event",
            [begin("s", where=None, quantifier=LOOP, until=A)],
            "a1 b1 b2 a2 b3 end",
        ),
        scenario(
            "until: does not end the wait for the loop",
            [begin("c"), followed_by("a", quantifier=LOOP, until=D), followed_by("b")],
            "c1 d1 a1 d2 a2 b1 end",
        ),
        scenario(
            "until: kills what is below the number",
            [begin("a", quantifier=["times_or_more", 3], until=D), followed_by("b")],
            "a1 a2 d1 a3 b1 a4 a5 a6 d2 b2 end",
        ),
        scenario(
            "until: of a group",
            [begin([begin("a"), followed_by("b")], quantifier=LOOP, until=D), followed_by("c")],
            "a1 b1 c1 a2 d1 b2 c2 a3 b3 c3 end",
        ),
        scenario(
            "optional: with and without",
            [begin("a"), followed_by("b", optional=True), followed_by("c")],
            "a1 b1 c1 a2 c2 end",
        ),
        scenario("optional: a last step", [begin("a"), followed_by("b", optional=True)], "a1 c1 b1 b2 end"),
        scenario("optional: a first step", [begin("a", optional=True), followed_by("b")], "b1 a1 c1 b2 end"),
        scenario(
            "optional: nothing but optional steps",
            [begin("a", optional=True), followed_by("b", optional=True)],
            "a1 c1 b1 end",
        ),
        scenario(
            "times(0, n) is optional",
            [begin("c"), followed_by("a", quantifier=["times", 0, 2]), followed_by("b")],
            "c1 a1 a2 b1 c2 b2 end",
        ),
        scenario(
            "context: leaves out the event itself",
            [begin("a", quantifier=LOOP, **low), followed_by("b")],
            "a1 a2 a3 a0 b1 end",
        ),
        scenario(
            "context: in a consecutive loop",
            [begin("a", quantifier=LOOP, consecutive=True, **rising), then("b")],
            "a1 a2 a2 a3 b1 end",
        ),
        scenario(
            "context: of another step", [begin("a"), followed_by("b", where=[B, {"above_last": "a"}])], "a2 b1 b3 end"
        ),
        scenario(
            "context: of a step that comes later",
            [begin("a", where=[A, {"above_last": "b"}]), followed_by("b")],
            "a2 b1 end",
        ),
        scenario(
            "context: in until",
            [begin("a", quantifier=LOOP, until={"above_last": "a"}), followed_by("b")],
            "a3 a2 b1 a1 a4 b2 end",
        ),
    ]


def _nots() -> list[Json]:
    trailing = [begin("a"), not_followed_by("b", within=10)]
    both = {"where": [{"above": 3}]}
    return [
        scenario("not_followed_by: last, nothing comes in time", trailing, "a1@1 c1@5 b1@12 w30 end"),
        scenario("not_next: last, needs another event", [begin("a"), not_next("b")], "a1 end"),
        scenario("not_next: last, the next event decides", [begin("a"), not_next("b")], "a1 c1 a2 b1 a3 a4 end"),
        scenario("not_followed_by: last, at the end of the window", trailing, "a1@1 b1@11 w30 end"),
        scenario("not_followed_by: last, in the window", trailing, "a1@1 b1@10 w30 end"),
        scenario(
            "not_followed_by: last, behind a loop",
            [begin("a", quantifier=LOOP), not_followed_by("b", within=10)],
            "a1@1 a2@2 w30 end",
        ),
        scenario(
            "not_followed_by: last, behind a loop and another event",
            [begin("a", quantifier=LOOP), not_followed_by("b", within=10)],
            "a1@1 a2@2 c1@3 w30 end",
        ),
        scenario("not_followed_by: last, with skip", trailing, "a1@1 a2@2 c1@3 w30 end", PAST_LAST),
        scenario(
            "not: fits the last step, too",
            [begin("a"), not_followed_by("n", **both), followed_by("b")],
            "a1 b5 a2 b1 end",
        ),
        scenario(
            "not: fits a step in the middle, too",
            [begin("a"), not_followed_by("n", **both), followed_by("b"), followed_by("c")],
            "a1 b5 c1 a2 b1 c2 end",
        ),
        scenario(
            "not_next: fits the last step, too", [begin("a"), not_next("n", **both), then("b")], "a1 b5 a2 b1 end"
        ),
        scenario(
            "not: is over when the next step began",
            [begin("a"), not_followed_by("n", where=[D]), followed_by("b"), followed_by("c")],
            "a1 b1 d1 c1 a2 d2 b2 c2 end",
        ),
        scenario(
            "not: is over when the next loop began",
            [begin("a"), not_followed_by("n", where=[D]), followed_by("b", quantifier=LOOP), followed_by("c")],
            "a1 b1 d1 b2 c1 end",
        ),
        scenario(
            "not: is over when the next group began",
            [begin("a"), not_followed_by("n", where=[D]), followed_by([begin("b"), followed_by("c")])],
            "a1 b1 d1 c1 end",
        ),
        scenario(
            "not: before an optional step",
            [begin("a"), not_followed_by("n", where=[D]), followed_by("b", optional=True), followed_by("c")],
            "a1 b1 d1 c1 a2 d2 c2 end",
        ),
        scenario(
            "not: behind a loop",
            [begin("a", quantifier=LOOP), not_followed_by("d"), followed_by("b")],
            "a1 a2 d1 a3 b1 end",
        ),
        scenario(
            "not: behind times",
            [begin("a", quantifier=["times", 2]), not_followed_by("d"), followed_by("b")],
            "a1 d1 a2 b1 a3 a4 d2 b2 a5 a6 b3 end",
        ),
        scenario(
            "not: two in a row",
            [begin("a"), not_followed_by("b"), not_followed_by("c"), followed_by("d")],
            "a1 d1 a2 b1 d2 a3 c1 d3 end",
        ),
        scenario(
            "not_next: and then not_followed_by",
            [begin("a"), not_next("b"), not_followed_by("c"), followed_by("d")],
            "a1 d1 a2 b1 d2 a3 d0 c1 d3 end",
        ),
        scenario(
            "not: without a condition",
            [begin("a"), not_followed_by("n", where=None), followed_by("b")],
            "a1 b1 c1 a2 b2 end",
        ),
    ]
