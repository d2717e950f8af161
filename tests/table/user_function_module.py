"""Functions that ``CREATE FUNCTION ... LANGUAGE PYTHON`` names."""

from firesteel.table.udf import udf, udtf

shout = udf(lambda text: text.upper() + "!", result_type="STRING", name="shout")
letters = udtf(lambda text: list(text), result_types="STRING", name="letters")
number = 7
