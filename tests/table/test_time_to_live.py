"""State of operators on tables that expires."""

import pyarrow as pa
from operatorkit import Change, OperatorRun

from firesteel.runtime.operators.table import (
    AggregateCall,
    GroupAggregate,
    GroupAggregateOperator,
    Join,
    JoinOperator,
    Order,
    Rank,
    RankOperator,
)

LONG = pa.int64()
ROWS = pa.schema([("k", pa.string()), ("v", LONG)])


class Running(OperatorRun):
    """An operator, at times that the test says, started anew before each of them."""

    def at(self, now: int, *rows: tuple[str, int], number: int = 0) -> list[Change]:
        self.restart()
        self.stub.now = now
        self.take([(0, row) for row in rows], ROWS, number)
        return self.taken()


def test_groups_expire_after_their_last_change() -> None:
    calls = (AggregateCall("MAX", 1, LONG), AggregateCall("COUNT", 1, LONG, distinct=True))
    schema = pa.schema([("k", pa.string()), ("m", LONG), ("d", LONG)])
    spec = GroupAggregate((0,), calls, ROWS, schema, retracts=False, state_ttl=100)
    groups = Running(GroupAggregateOperator, spec)
    assert groups.at(0, ("a", 5), ("b", 1)) == [(0, ("a", 5, 1)), (0, ("b", 1, 1))]
    # Nothing is different, but whoever keeps it has to hear that it is used.
    assert groups.at(60, ("a", 5)) == [(1, ("a", 5, 1)), (2, ("a", 5, 1))]
    assert groups.at(100, ("b", 0)) == [(0, ("b", 0, 1))]
    assert groups.at(159, ("a", 4)) == [(1, ("a", 5, 1)), (2, ("a", 5, 2))]
    assert groups.at(259, ("a", 4)) == [(0, ("a", 4, 1))]


def test_rows_of_a_join_expire_side_by_side() -> None:
    spec = Join(
        "INNER", (0,), (0,), ROWS, ROWS, pa.schema([*ROWS, ("k2", pa.string()), ("v2", LONG)]), None, (100, None)
    )
    join = Running(JoinOperator, spec)
    join.at(0, ("a", 1))
    join.at(0, ("b", 2), number=1)
    assert join.at(99, ("a", 3), number=1) == [(0, ("a", 1, "a", 3))]
    assert join.at(100, ("a", 4), number=1) == []
    assert join.at(1000, ("b", 5)) == [(0, ("b", 5, "b", 2))]


def test_partitions_of_top_n_expire() -> None:
    spec = Rank((0,), (Order(1),), ROWS, ROWS, 1, state_ttl=100)
    rank = Running(RankOperator, spec)
    assert rank.at(0, ("a", 1)) == [(0, ("a", 1))]
    assert rank.at(50, ("a", 2)) == []
    assert rank.at(200, ("a", 2)) == [(0, ("a", 2))]
