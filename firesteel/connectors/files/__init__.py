"""The file sink, exactly once: part files in buckets, rolled by a policy, seen by readers only when they are committed.

How it fits the commit protocol (:mod:`firesteel.engine.commits`):

1. A subtask writes into *part files* with hidden names, one per bucket: ``.part-….inprogress``. Names are unique over
   subtasks, restarts and runs, so nothing is ever overwritten.
2. When a batch ends, each part is either *finished* (the policy says so, the input has ended, the format cannot be cut
   off) or *in progress*. Both are forced to disk, and both are committables: a finished part with the name it is to
   have, one in progress with its length, for up to there its content is valid.
3. Committing renames finished parts to their visible names. Of parts in progress it writes down the valid length, in
   one small hidden file for the whole sink (the *ledger*).
4. In the next batch the writer looks into the ledger, once. A part that is not there as the writer left it belongs to
   a run of the batch that did not count, or was closed because the subtask had moved: it is left alone, and a new
   one begins.
5. After a failure no writer goes on with a part of another: writers begin new parts. The committer closes what is
   there: the valid beginning of a part in progress becomes a visible file, the rest of it and parts that no logged
   batch knows of are deleted. The same is done when a job ends or is cancelled, so no results stay hidden; and when
   a subtask commits that has another writer than before.

The beginning of a part is copied and not cut off in place, for a task that was given up may still be writing to it.
"""
