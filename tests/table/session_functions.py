"""Functions that the recorded sessions name: PyFlink's where PyFlink runs them."""

try:
    from pyflink.table.udf import udf
except ImportError:
    from firesteel.table.udf import udf

shout = udf(lambda text: text.upper() + "!", result_type="STRING")
twice = udf(lambda number: 2 * number, result_type="BIGINT")
thrice = udf(lambda number: 3 * number, result_type="BIGINT")
