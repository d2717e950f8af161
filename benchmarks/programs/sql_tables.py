"""The tables of the SQL programs: numbers that the engine's own datagen makes, and a sink that keeps nothing."""

import argparse


def sequence(name: str, records: int, columns: str = "", settings: str = "") -> str:
    """The numbers below ``records`` as column ``n``, as fast as they are read. ``columns`` and ``settings``: more of
    them, each with a comma in front."""
    return (
        f"CREATE TABLE {name} (n BIGINT{columns}) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', "
        f"'fields.n.start' = '0', 'fields.n.end' = '{records - 1}', 'rows-per-second' = '1000000000'{settings})"
    )


def sink(columns: str, options: argparse.Namespace) -> str:
    """Where results end, or are printed."""
    connector = "print" if options.show else "blackhole"
    return f"CREATE TABLE sink ({columns}) WITH ('connector' = '{connector}')"
