"""State of operators on tables on Spark: through a failure, a savepoint and a change of parallelism."""

from pathlib import Path

from savepointkit import Halves
from tablekit import by_word, changes, counted, expected, found

from firesteel.testing import Crash


def test_groups_survive_a_crash_and_a_change_of_parallelism(tmp_path: Path) -> None:
    halves = Halves(tmp_path, "local")
    begin, end = [changes(300), changes(100, 300)], [changes(200, 400), changes(50, 600)]
    crash = Crash()

    got = halves.save(counted, begin, 2)
    got += halves.resume(
        counted,
        [*begin, end[0], [crash], end[1]],
        1,
        restart__strategy_type="fixed-delay",
        restart__strategy_fixed__delay_attempts="2",
        restart__strategy_fixed__delay_delay="10 ms",
    )

    assert by_word(found(got)) == by_word(expected(changes(650)))
    assert crash.count == 1
