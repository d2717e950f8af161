"""How rows are read from and written as JSON, CSV and Avro: what ``firesteel.datastream.formats`` is made of.

What a type means for a format is compiled once into a function, so that a record costs no walk through types.
"""
