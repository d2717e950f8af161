"""Running a bare loop over number ranges: in this process, or in several at once."""

import multiprocessing
from collections.abc import Callable

Loop = Callable[[int, int], object]


def run(loop: Loop, records: int, processes: int) -> None:
    """Share ``records`` numbers between ``processes`` loops; one loop runs in this very process."""
    if processes == 1:
        loop(0, records)
        return
    context = multiprocessing.get_context("fork")
    bounds = [records * i // processes for i in range(processes + 1)]
    started = [context.Process(target=loop, args=bounds[i : i + 2]) for i in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a loop ended with exit code {process.exitcode}")
