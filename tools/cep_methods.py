"""Scenarios for complex event processing: each method of patterns, what is refused, skip strategies and groups.

``tools/record_cep.py`` has Flink say what comes out of them.
"""

from __future__ import annotations

from cep_writing import (
    LOOP,
    NO_SKIP,
    PAST_LAST,
    SKIPS,
    TO_NEXT,
    A,
    B,
    C,
    D,
    Json,
    begin,
    followed_by,
    followed_by_any,
    not_followed_by,
    not_next,
    scenario,
    skip_with,
    then,
)

__all__ = ["scenarios"]


def scenarios() -> list[Json]:
    """All of them."""
    return [
        *_methods(),
        *_skips(),
        *_groups(),
        *_refused(),
    ]


def _methods() -> list[Json]:
    """Each method of a pattern, on inputs that tell it from its neighbours."""
    found = []
    mixed = "a1 c1 b1 a2 b2 b3 c2 b4 end"
    for how in (then, followed_by, followed_by_any, not_next, not_followed_by):
        last = {"within": 20} if how is not_followed_by else {}
        found.append(scenario(f"{how.__name__}: b", [begin("a"), how("b", **last)], mixed))
        if how in (not_next, not_followed_by):
            found.append(scenario(f"{how.__name__}: in the middle", [begin("a"), how("b"), followed_by("c")], mixed))
    several = [begin("s", where=[A, {"above": 1}], **{"or": [C]})]
    found.append(scenario("where: several are AND, or_ is an alternative", several, "a1 a2 c0 b5 end"))
    found.append(scenario("or_: without where", [begin("s", where=None, **{"or": [A]})], "a1 b1 end"))
    found.append(scenario("no condition: any event", [begin("s", where=None)], "a1 b1 end"))
    for quantifier in (LOOP, ["times", 2], ["times", 1, 3], ["times", 0, 2], ["times_or_more", 2]):
        for inner in ("", "consecutive", "allow_combinations"):
            for said in ("", "optional", "greedy"):
                if (inner, said) == ("allow_combinations", "greedy") or (quantifier[1:2], said) == ([0], "optional"):
                    continue
                options = {name: True for name in (inner, said) if name} | {"quantifier": quantifier}
                name = " ".join(map(str, [*quantifier, inner, said])).rstrip()
                for how in (then, followed_by, followed_by_any):
                    steps = [begin("c"), how("a", **options), followed_by("b")]
                    found.append(scenario(f"{how.__name__}: {name}", steps, "c1 a1 a2 b1 d1 a3 b2 end"))
                found.append(scenario(f"begin: {name}", [begin("a", **options), then("b")], "a1 a2 b1 d1 a3 b2 end"))
                found.append(scenario(f"last: {name}", [begin("c"), followed_by("a", **options)], "c1 a1 a2 d1 a3 end"))
    for until in (["one_or_more"], ["times_or_more", 2]):
        for said in ("", "optional", "greedy", "consecutive", "allow_combinations"):
            options = {"quantifier": until, "until": D} | ({said: True} if said else {})
            name = f"until: {until[0]} {said}"
            found.append(scenario(name, [begin("a", **options), followed_by("b")], "a1 a2 b1 d1 a3 b2 a4 d2 b3 end"))
            steps = [begin("c"), followed_by("a", **options), followed_by("b")]
            found.append(scenario(f"{name} behind c", steps, "c1 a1 a2 d1 b1 a3 b2 end"))
    return found


def _skips() -> list[Json]:
    found = []
    inputs = {
        "loop": ([begin("a", quantifier=LOOP), followed_by("b")], "a1 a2 a3 b1 a4 b2 end"),
        "three steps": (
            [begin("a", quantifier=LOOP), followed_by("b", quantifier=LOOP), then("c")],
            "a1 a2 b1 b2 c1 a3 b3 c2 end",
        ),
        "overlapping": (
            [begin("s", where=[{"above": 0}]), followed_by("b"), followed_by("c")],
            "a1 b1 b2 c1 c2 a2 b3 c3 end",
        ),
        "held back": (
            [begin("s", where=[{"above": 0}]), followed_by("b"), followed_by("c", within=8)],
            "d1@1 b1@2 d2@3 b2@4 a1@5 b3@6 c1@7 a2@9 w30 end",
        ),
    }
    for name, (steps, events) in inputs.items():
        first, last = steps[0]["name"], steps[1]["name"]
        targets = [skip_with(kind, step) for kind in ("skip_to_first", "skip_to_last") for step in (first, last)]
        for skip in [*SKIPS, *targets]:
            found.append(scenario(f"{skip['kind']} {skip.get('step', '')}: {name}", steps, events, skip))
    held = [begin("s", where=[{"above": 0}]), followed_by("b", where=[B, {"above_last": "s"}], within=10)]
    optional = [begin("c"), followed_by("a", optional=True), followed_by("b")]
    any_two = [begin("a"), followed_by_any("b", quantifier=LOOP)]
    found += [
        scenario("held back: until the earlier one times out", held, "a5@1 a1@2 b3@3 w10 w11 end", TO_NEXT),
        scenario(
            "held back: for ever without a window",
            [held[0], followed_by("b", where=[B, {"above_last": "s"}])],
            "a5@1 a1@2 b3@3 end",
            TO_NEXT,
        ),
        scenario("held back: pruned by the earlier one", held, "a4@1 a1@2 b3@3 b9@4 w30 end", PAST_LAST),
        scenario("not held back: no_skip", held, "a5@1 a1@2 b3@3 w30 end", NO_SKIP),
        scenario(
            "pruned: does not time out", [begin("a"), followed_by("b", within=10)], "a1@1 a2@2 b1@3 w40 end", PAST_LAST
        ),
        scenario(
            "pruned: by a match that was not the first",
            [begin("a"), followed_by_any("b", within=10)],
            "a1@1 b1@2 b2@3 w40 end",
            TO_NEXT,
        ),
        scenario("target: missing in the match", optional, "c1 b1 c2 b2 end", skip_with("skip_to_first", "a")),
        scenario(
            "target: missing in the match, an error", optional, "c1 b1 c2 b2 end", skip_with("skip_to_first", "a", True)
        ),
        scenario(
            "target: missing in the match, an error of skip_to_last",
            optional,
            "c1 b1 c2 b2 end",
            skip_with("skip_to_last", "a", True),
        ),
        scenario("target: there, so no error", optional, "c1 a1 b1 end", skip_with("skip_to_last", "a", True)),
        scenario(
            "target: the match's first event, an error", any_two, "a1 b1 b2 end", skip_with("skip_to_first", "a", True)
        ),
        scenario("target: the match's first event", any_two, "a1 b1 a2 b2 b3 end", skip_with("skip_to_first", "a")),
        scenario(
            "target: starves later matches",
            [begin("s", where=[{"above": 0}]), followed_by_any("b")],
            "a1 a2 b1 b2 a3 b3 end",
            skip_with("skip_to_first", "s"),
        ),
    ]
    return found


def _groups() -> list[Json]:
    found = []
    events = "c1 a1 b1 a2 b2 d1 a3 d2 b3 d3 c2 end"
    pair = [begin("a"), followed_by("b")]
    strict = [begin("a"), then("b")]
    for how in (then, followed_by, followed_by_any):
        for inner, name in ((pair, "followed_by"), (strict, "next")):
            for quantifier in (None, LOOP, ["times", 2], ["times", 1, 2], ["times_or_more", 2]):
                for said in ("", "optional", "consecutive", "allow_combinations"):
                    options: Json = {said: True} if said else {}
                    if quantifier is not None:
                        options["quantifier"] = quantifier
                    elif said in ("consecutive", "allow_combinations"):
                        continue
                    label = " ".join(map(str, [how.__name__, name, *(quantifier or []), said])).rstrip()
                    steps = [begin("c"), how(inner, **options), followed_by("d")]
                    found.append(scenario(f"group: {label}", steps, events))
    found += [
        scenario("group: first", [begin(pair, quantifier=["times", 2]), followed_by("d")], events),
        scenario("group: first, optional", [begin(pair, optional=True), followed_by("d")], events),
        scenario("group: first, with skip", [begin(pair), followed_by("d")], events, PAST_LAST),
        scenario("group: last", [begin("c"), followed_by(pair, quantifier=LOOP)], events),
        scenario(
            "group: in a group", [begin([begin("c"), followed_by(pair, quantifier=LOOP)]), followed_by("d")], events
        ),
        scenario(
            "group: with a not inside",
            [begin("c"), followed_by([begin("a"), not_next("d"), followed_by("b")], quantifier=LOOP)],
            events,
        ),
        scenario("group: a not before it", [begin("c"), not_next("d"), followed_by(pair)], events),
        scenario("group: within", [begin("c"), followed_by(pair, quantifier=LOOP, within=5)], events),
        scenario(
            "group: within inside",
            [begin("c"), followed_by([begin("a"), followed_by("b", within=5)], quantifier=LOOP)],
            events,
        ),
        scenario(
            "group: previous and current inside",
            [begin("c"), followed_by([begin("a"), followed_by("b", within_previous=2)], quantifier=LOOP)],
            events,
        ),
        scenario(
            "group: an optional step first",
            [begin("c"), followed_by([begin("a", optional=True), followed_by("b")], quantifier=["times", 2])],
            events,
        ),
        scenario(
            "group: a loop inside",
            [begin("c"), followed_by([begin("a", quantifier=LOOP), followed_by("b")], quantifier=["times", 2])],
            events,
        ),
        scenario(
            "group: a greedy loop inside",
            [begin("c"), followed_by([begin("a", quantifier=LOOP, greedy=True), followed_by("b")])],
            events,
        ),
    ]
    return found


def _refused() -> list[Json]:
    a, b, c = begin("a"), followed_by("b"), followed_by("c")
    loop = {"quantifier": LOOP}
    patterns: dict[str, list[Json]] = {
        "not_followed_by last without within": [a, not_followed_by("b")],
        "optional before not_next": [a, followed_by("b", optional=True), not_next("c")],
        "optional before not_followed_by": [a, followed_by("b", optional=True), not_followed_by("c"), followed_by("d")],
        "times(0, n) before a not": [a, followed_by("b", quantifier=["times", 0, 2]), not_next("c")],
        "optional behind greedy": [begin("a", greedy=True, **loop), followed_by("b", optional=True)],
        "optional twice": [a, followed_by("b", quantifier=["times", 0, 2], optional=True)],
        "optional of a not": [a, not_next("b", optional=True)],
        "greedy of a step that comes once": [begin("a", greedy=True), b],
        "greedy of a group": [begin([begin("a"), b], greedy=True, **loop), c],
        "greedy of a not": [a, not_next("b", greedy=True)],
        "a quantifier of a not": [a, not_next("b", **loop), c],
        "until without a loop": [begin("a", until=B), c],
        "until with times": [begin("a", quantifier=["times", 2], until=B), c],
        "consecutive without a quantifier": [begin("a", consecutive=True), b],
        "allow_combinations without a quantifier": [begin("a", allow_combinations=True), b],
        "consecutive and allow_combinations": [begin("a", consecutive=True, allow_combinations=True, **loop), b],
        "the same name twice": [a, followed_by("a")],
        "the same name in a group": [a, followed_by([begin("a"), b])],
        "the same name in two groups": [begin([begin("a")]), followed_by([begin("a"), b])],
        "a step's window larger than the whole": [a, followed_by("b", within_previous=20, within=10)],
        "a quantifier's window larger than the whole": [
            a,
            followed_by("b", window=20, quantifier=["times", 3], within=10),
        ],
        "times(0)": [begin("a", quantifier=["times", 0])],
        "times(2, 1)": [begin("a", quantifier=["times", 2, 1])],
        "times(0, 0)": [begin("a", quantifier=["times", 0, 0])],
        "times_or_more(0)": [begin("a", quantifier=["times_or_more", 0])],
        "times(-1)": [begin("a", quantifier=["times", -1])],
        "where of a group": [begin([begin("a")], where=[A])],
        "or_ of a group": [begin([begin("a")], **{"or": [A]})],
    }
    return [
        *(scenario(f"refused: {name}", steps, "end") for name, steps in patterns.items()),
        scenario("refused: an unknown target", [a, b], "end", skip_with("skip_to_first", "z")),
        scenario("refused: an unknown target of skip_to_last", [a, b], "end", skip_with("skip_to_last", "z")),
        scenario(
            "refused: a target inside a group", [begin([begin("a"), b]), c], "end", skip_with("skip_to_last", "b")
        ),
    ]
