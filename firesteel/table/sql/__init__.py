"""SQL: text to a tree that knows where everything was written."""

from firesteel.table.sql.errors import NotSupportedError, SqlError, SqlParseError, SqlValidationError
from firesteel.table.sql.parser import parse, parse_expression, parse_query, parse_script

__all__ = [
    "NotSupportedError",
    "SqlError",
    "SqlParseError",
    "SqlValidationError",
    "parse",
    "parse_expression",
    "parse_query",
    "parse_script",
]
