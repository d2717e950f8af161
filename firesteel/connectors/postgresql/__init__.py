"""PostgreSQL: writers that insert rows, and a committer of prepared transactions."""
