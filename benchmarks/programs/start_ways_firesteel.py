"""From a command to the first line of a job's output: a program of its own, a job of the job manager, and one in a
driver of the job manager that was started ahead. The ways take turns, so that they share what else the machine does.

Processor time is that of all processes of a program of its own: it means something on a machine that others use, too.
Of a job manager's it cannot be told, because its processes come and go meanwhile. The memory of the driver that waits
is that of all its processes.
"""

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from measure import report
from processes import descendants

PROGRAM = Path(__file__).parent / "startup_datastream.py"
RESULT = re.compile(r"\d+> \(")

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--repeats", type=int, default=3, help="starts that count, of each way")
options = parser.parse_args()


def firesteel(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "firesteel", *arguments]


def processor_seconds(root: int) -> float:
    """Of this process and all below it."""
    total = 0.0
    for pid in {root, *descendants(root)}:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            # With those of its children that have ended.
            total += times.user + times.system + times.children_user + times.children_system
    return total


class Manager:
    """A job manager of its own."""

    def __init__(self, folder: Path, warm: int) -> None:
        self.folder, self.warm = folder, warm
        start = ("cluster", "start", "--dir", str(folder), "--port", "0", "--warm-drivers", str(warm))
        said = subprocess.run(firesteel(*start), check=True, capture_output=True, text=True).stdout
        self.address = said.partition("http://")[2].split()[0]
        self.environment = {**os.environ, "FIRESTEEL_CLUSTER_DIR": str(folder)}

    @property
    def process(self) -> int:
        from firesteel.cluster.starting import find_running

        running = find_running(self.folder)
        assert running is not None
        return running.pid

    def wait(self) -> None:
        """Until its driver is ready, and a moment longer: what it does then is not the job's."""
        from firesteel.cluster.client import ClusterClient

        client = ClusterClient.find(folder=self.folder)
        assert client is not None
        deadline = time.monotonic() + 300
        while client.get("/firesteel/v1/manager")["warmDrivers"] < self.warm:
            if time.monotonic() > deadline:
                raise TimeoutError("no driver is ready")
            time.sleep(0.2)
        time.sleep(1)

    def memory(self) -> float:
        """Of all processes of the driver that waits, in MiB; what they share is divided among them."""
        total = 0
        for pid in descendants(self.process):
            with contextlib.suppress(psutil.Error):
                total += psutil.Process(pid).memory_full_info().pss
        return total / (1 << 20)

    def stop(self) -> None:
        subprocess.run(firesteel("cluster", "stop", "--dir", str(self.folder)), check=True, capture_output=True)


def start(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds, and seconds of processor time of the command, to the first result."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if RESULT.match(line):
            break
    else:
        raise RuntimeError(f"no result: {''.join(lines)[-1500:]}")
    seconds = time.perf_counter() - begun
    used = processor_seconds(process.pid)
    process.stdout.read()
    process.wait()
    return seconds, used


@contextlib.contextmanager
def managers() -> Iterator[tuple[Manager, Manager]]:
    with tempfile.TemporaryDirectory(prefix="fs-") as place, contextlib.ExitStack() as stack:
        os.environ["FIRESTEEL_RUNTIME_DIR"] = place
        found = []
        for warm in (0, 1):
            found.append(Manager(Path(place) / f"c{warm}", warm))
            stack.callback(found[-1].stop)
        yield found[0], found[1]


def main() -> None:
    taken: dict[str, list[float]] = {}
    processor, memory = [], []
    with managers() as (cold, warm):
        for number in range(options.repeats + 1):
            warm.wait()
            memory.append(warm.memory())
            seconds, used = start([sys.executable, str(PROGRAM)], dict(os.environ))
            found = {"own": seconds}
            for name, manager in (("cold driver", cold), ("warm driver", warm)):
                found[name], _ = start(firesteel("run", "-m", manager.address, str(PROGRAM)), manager.environment)
            print(f"# {number}: {', '.join(f'{name} {one:.2f} s' for name, one in found.items())}", flush=True)
            # The first start of each only fills the caches.
            if number:
                processor.append(used)
                for name, one in found.items():
                    taken.setdefault(name, []).append(one)
    report(
        {
            "to_first_output_s": {name: statistics.median(starts) for name, starts in taken.items()},
            "processor_s_of_own": statistics.median(processor),
            "memory_of_a_warm_driver_mib": statistics.median(memory),
        }
    )


main()
