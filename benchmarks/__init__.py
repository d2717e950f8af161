"""Behind ``make bench``: the same work on Firesteel, PyFlink, Bytewax and in bare Python loops."""
