"""Copies the last checkpoint of a job that does not run into a savepoint: ``python -m firesteel.cluster.copy_checkpoint
CHECKPOINT TARGET``. It needs Spark, which a server must not carry around, so it is a process of its own."""

from __future__ import annotations

import sys

from firesteel.engine.manifest import is_checkpoint
from firesteel.engine.savepoints.places import Place
from firesteel.errors import FiresteelError


def main(checkpoint: str, target: str) -> int:
    # Looked at first: Spark takes seconds to start.
    if not is_checkpoint(checkpoint):
        print(f"The job has left no checkpoint in {checkpoint}.", file=sys.stderr)
        return 1
    from firesteel.engine.spark.savepoints import savepoint_of_checkpoint
    from firesteel.engine.spark.state_frames import own_session

    try:
        savepoint_of_checkpoint(own_session(), checkpoint, Place.of(target))
    except FiresteelError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
