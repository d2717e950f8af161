"""Programs with users' functions. They run on Firesteel and, with PyFlink's imports, on PyFlink.

What PyFlink gives for them is kept in ``functions_by_pyflink.json``. It is recorded with::

    RECORD_TO=$PWD/tests/table/functions_by_pyflink.json .venv/bin/python tools/oracle.py show \\
        tests/table/function_programs
"""

from function_programs import aggregates, misfits, scalars, tables, windows
from function_programs.aggregates import WeightedAverage
from function_programs.kit import PROGRAMS, outcome
from function_programs.windows import MEAN, clicks

__all__ = [
    "MEAN",
    "PROGRAMS",
    "WeightedAverage",
    "aggregates",
    "clicks",
    "misfits",
    "outcome",
    "scalars",
    "tables",
    "windows",
]
