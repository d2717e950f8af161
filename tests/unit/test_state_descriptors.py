"""State descriptors and time to live."""

from __future__ import annotations

import pickle

import pytest

from firesteel.common import Duration, Time, Types
from firesteel.datastream.functions import AggregateFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.errors import ProgramError


class Count(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def test_descriptors_know_their_types() -> None:
    assert ValueStateDescriptor("v", Types.INT()).get_name() == "v"
    assert ListStateDescriptor("l", Types.INT()).elem_type_info == Types.INT()
    described = MapStateDescriptor("m", Types.STRING(), Types.INT())
    assert (described.key_type_info, described.value_type_info) == (Types.STRING(), Types.INT())
    assert described.type_info == Types.MAP(Types.STRING(), Types.INT())
    assert AggregatingStateDescriptor("a", Count(), Types.LONG()).get_agg_function().add("x", 1) == 2


def test_descriptors_compare_hash_and_pickle() -> None:
    one = ValueStateDescriptor("v", Types.INT())
    assert one == ValueStateDescriptor("v", Types.INT())
    assert one != ValueStateDescriptor("v", Types.LONG())
    assert one != ListStateDescriptor("v", Types.INT())
    one.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).cleanup_full_snapshot().build())
    back = pickle.loads(pickle.dumps(one))
    assert back == one
    assert back.ttl_config == one.ttl_config


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (
            lambda: ValueStateDescriptor("", Types.INT()),
            "A state needs a name that is a non-empty string, got ''.",
        ),
        (lambda: ValueStateDescriptor("v", Types.INT), "Did you mean Types.INT()?"),
        (
            lambda: ListStateDescriptor("l", int),
            "State 'l' needs a type such as Types.LONG(), got <class 'int'>.",
        ),
        (lambda: ReducingStateDescriptor("r", 5, Types.INT()), "Expected a ReduceFunction or a callable"),
        (lambda: AggregatingStateDescriptor("a", Count, Types.INT()), "Pass an instance: Count()."),
        (
            lambda: ValueStateDescriptor("v", Types.INT()).enable_time_to_live(5),
            "needs a StateTtlConfig, got int.",
        ),
        (lambda: StateTtlConfig.new_builder(5), "A time to live is a Time or a Duration"),
        (lambda: StateTtlConfig.new_builder(Time.seconds(0)), "must be longer than nothing, got 0 ms."),
    ],
)
def test_mistakes_are_named(build, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ProgramError) as caught:
        build()
    assert text in str(caught.value)


def test_ttl_defaults_are_flinks() -> None:
    config = StateTtlConfig.new_builder(Duration.of_hours(1)).build()
    assert config.get_ttl() == Time.hours(1)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.is_enabled()
    cleanup = config.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background()
    assert not cleanup.in_full_snapshot()
    incremental = cleanup.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (5, False)
    rocksdb = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert rocksdb is not None
    assert rocksdb.get_query_time_after_num_entries() == 1000


def test_ttl_builder() -> None:
    config = (
        StateTtlConfig.new_builder(Time.seconds(1))
        .set_update_type(StateTtlConfig.UpdateType.Disabled)
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_incrementally(7, True)
        .cleanup_in_rocksdb_compact_filter(9)
        .disable_cleanup_in_background()
        .set_ttl(Time.seconds(2))
        .build()
    )
    assert not config.is_enabled()
    assert config.get_ttl() == Time.seconds(2)
    cleanup = config.get_cleanup_strategies()
    assert not cleanup.is_cleanup_in_background()
    incremental = cleanup.get_incremental_cleanup_strategy()
    assert incremental is not None
    assert incremental.get_cleanup_size() == 7
    bare = StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background().build()
    assert bare.get_cleanup_strategies().get_incremental_cleanup_strategy() is None
