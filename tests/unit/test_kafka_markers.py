"""What is asked of brokers for the end of transactions, against brokers of this test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import SimpleNamespace as Some
from typing import Any

import pytest

from firesteel.connectors.kafka.markers import ALL, Markers
from firesteel.connectors.kafka.properties import KafkaProperties
from firesteel.connectors.kafka.transactions import Transaction, Transactions, TransactionState

BROKERS = 3


class Answer:
    """Is there when all brokers were asked."""

    def __init__(self, brokers: Brokers, content: Any) -> None:
        self.brokers, self.content = brokers, content

    def __await__(self) -> Generator[None, None, Any]:
        assert self.brokers.asked % BROKERS == 0, "one after the other"
        yield
        return self.content


class Brokers:
    """Three of them, leading partition 0, 1 and 2 of a topic. ``open`` holds the epochs of open transactions."""

    def __init__(self, open_epochs: dict[int, int]) -> None:
        self.open, self.asked, self.written = open_epochs, 0, list[Any]()
        self._manager = self
        self.cluster = Some(brokers=lambda: [Some(node_id=node) for node in range(BROKERS)])

    async def _get_cluster_metadata(self, topics: set[str]) -> Any:
        partitions = [{"partition_index": number, "leader_id": number} for number in range(BROKERS)]
        return {"topics": [{"name": topic, "partitions": partitions} for topic in topics]}

    def _describe_producers_request(self, places: dict[str, list[int]]) -> Any:
        return "describe"

    def _list_transactions_request(self, state_filters: list[str]) -> Any:
        return "list"

    def _list_transactions_process_response(self, answer: Any) -> Any:
        return answer

    def send(self, request: Any, node_id: int) -> Any:
        if not isinstance(request, str):
            return self._write(request.markers[0], node_id)
        if request == "list":
            self.asked += 1
            return Answer(self, [Some(transactional_id=f"mine-{node_id}"), Some(transactional_id="other")])
        self.asked += 1
        producers = [Some(producer_id=7, producer_epoch=0, current_txn_start_offset=-1, coordinator_epoch=4)]
        if node_id in self.open:
            producers = [
                Some(
                    producer_id=7,
                    producer_epoch=self.open[node_id],
                    current_txn_start_offset=0,
                    coordinator_epoch=4,
                )
            ]
        partition = Some(partition_index=node_id, error_code=0, active_producers=producers)
        return Answer(self, Some(topics=[Some(name="t", partitions=[partition])]))

    async def _write(self, marker: Any, node: int) -> Any:
        del self.open[node]
        self.written.append((node, marker.producer_epoch, marker.transaction_result))
        return Some(markers=[Some(topics=[Some(partitions=[Some(error_code=0)])])])


class Conversations(Transactions):
    def __init__(self, brokers: Brokers, states: list[TransactionState | None]) -> None:
        super().__init__(KafkaProperties().having({"bootstrap.servers": "nowhere:1"}))
        self.brokers, self.states = brokers, states

    def ask(self, ask: Callable[[Any], Coroutine[Any, Any, Any]], doing: str) -> Any:
        return asyncio.run(ask(self.brokers))

    def describe(self, transactional_ids: Any) -> dict[str, TransactionState]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return {} if state is None else {state.transaction.transactional_id: state}


ENDED = Transaction("mine", 7, 3, 1000)
PLACES = [("t", 0), ("t", 1), ("t", 2)]


def state(name: str, epoch: int = 4) -> TransactionState:
    return TransactionState(name, ENDED._replace(epoch=epoch, started=-1))


def test_all_brokers_are_asked_at_once() -> None:
    brokers = Brokers({})
    assert Conversations(brokers, []).open_ones("mine") == ["mine-0", "mine-1", "mine-2"]
    Markers(Conversations(brokers, [])).wait({ENDED: PLACES})
    assert brokers.asked == 2 * BROKERS
    assert brokers.written == []


@pytest.mark.parametrize(
    "states",
    [
        [state("CompleteAbort")],
        [state("PrepareAbort"), state("PrepareEpochFence"), state("CompleteAbort")],
        [state("Empty", 5)],
        [state("Ongoing", 5)],
        [None],
    ],
)
@pytest.mark.parametrize("places", [PLACES, [("t", ALL)]])
def test_an_abort_is_ended_where_the_coordinator_has_not_done_so_and_is_done(
    states: list[TransactionState | None], places: list[tuple[str, int]]
) -> None:
    brokers = Brokers({0: 3, 2: 3})
    Markers(Conversations(brokers, list(states))).wait({ENDED: places}, committed=False)
    assert brokers.written == [(0, 4, False), (2, 4, False)], "with the epoch raised, as a coordinator does it"


def test_what_is_open_with_a_later_epoch_is_another_one() -> None:
    brokers = Brokers({0: 4})
    Markers(Conversations(brokers, [state("Ongoing")])).wait({ENDED: PLACES}, committed=False)
    assert brokers.written == []


def test_a_commit_is_ended_with_its_own_epoch_and_by_its_own_numbers_only() -> None:
    brokers = Brokers({0: 3, 1: 2})
    committed = TransactionState("CompleteCommit", ENDED)
    Markers(Conversations(brokers, [committed])).wait({ENDED: PLACES})
    assert brokers.written == [(0, 3, True)]
    again = Brokers({0: 3})
    Markers(Conversations(again, [state("CompleteAbort")])).wait({ENDED: PLACES})
    assert again.written == [], "it was none"
