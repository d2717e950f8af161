"""Savepoints: a job's whole state as open Parquet tables with a manifest, written while the job runs, to begin others.

savepoint-1f0c2a-9d3be2a41c55/
  manifest.json                       what it is: see :mod:`.manifest`
  operators/<uid>/<state>/part-0.parquet   rows: see :mod:`.columns`
  sources/<uid>/…                     files that a source keeps for itself
"""
