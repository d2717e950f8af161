"""The durable format: all that a job leaves on disk or in the state store, for later versions to read.

| what | where it is described |
|---|---|
| versions of everything below | :mod:`firesteel.durable.versions` |
| names of our own objects in pickles | :mod:`firesteel.durable.names` |
| keys of the state store, how cells are encoded | :mod:`firesteel.durable.cells` |
| the header of a store, as typed records | :mod:`firesteel.durable.headers`, as bytes :mod:`~.header_codec` |
| declared types as plain data | :mod:`firesteel.durable.types` |
| files of a checkpoint folder: offsets, feedback, commits, the job | :mod:`firesteel.durable.folder` |

The manifests of checkpoints and savepoints are JSON of the frozen dataclasses in :mod:`firesteel.engine.manifest` and
:mod:`firesteel.engine.savepoints.manifest`. Where a key lives (:mod:`firesteel.runtime.keys`,
:mod:`firesteel.runtime.partitions`) and what a source's position looks like are durable, too.

Three rules:

1. What is written is plain data of Python, users' own values, and the names in ``names``. No class of the package
   stands in it by its module path.
2. What is written follows from the program and its input, never from how fast a path runs: an operator that takes a
   short cut writes what the general one would.
3. Whoever changes what is written raises the version, makes golden data of it (``tools/make_golden.py``), and keeps
   reading what was there before or refuses it with what to do. ``tests/unit/test_durable_format.py`` goes red
   otherwise.
"""
