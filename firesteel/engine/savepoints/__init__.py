"""Savepoints: a job's whole state as open Parquet tables with a manifest, written while the job runs, to begin others.

savepoint-1f0c2a-9d3be2a41c55/
  manifest.json                       what it is: see :mod:`.manifest`
  operators/<uid>/<state>/part-00000.parquet   rows: see :mod:`.columns`
  sources/<uid>/…                     files that a source keeps for itself

Names are those of :func:`~firesteel.common.path_names.path_name`. Readers go by the paths in the manifest.
"""
