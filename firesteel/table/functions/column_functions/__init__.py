"""Users' scalar functions on whole columns: a simple function is computed with Arrow and not called for each row.

- ``function_source`` finds the syntax tree of a function, if it is certain which one it is.
- ``translation`` makes of it an expression (``expression_nodes``), if it knows all that stands there.
- ``column_form`` is what travels to the workers, and where it is checked there against the function.
- ``node_evaluation`` computes the expression for a batch, with what Python's operators mean (``python_arithmetic``,
  ``python_comparison``, ``python_text``), and gives up where the result may be another one.
- ``guarded_column`` calls it: a batch that was given up is computed row by row, as if nothing of this existed.
"""

from firesteel.table.functions.column_functions.column_form import ColumnForm, column_form
from firesteel.table.functions.column_functions.declared_results import is_declarable
from firesteel.table.functions.column_functions.guarded_column import GuardedColumn
from firesteel.table.functions.column_functions.translation import NotTranslatedError

__all__ = ["ColumnForm", "GuardedColumn", "NotTranslatedError", "column_form", "is_declarable"]
