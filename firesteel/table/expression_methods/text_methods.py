"""Methods of expressions about text and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.table.expression_methods.calls import NOWHERE, HoldsNode, method_of, property_of
from firesteel.table.sql.syntax import Symbol

if TYPE_CHECKING:
    from firesteel.table.expression import Expression

__all__ = ["TextMethods"]


class TextMethods(HoldsNode):
    """Of expressions that are text.

    >>> from firesteel.table.expressions import col
    >>> col("a").upper_case.substring(1, 3)
    <Expression SUBSTRING(UPPER(a), 1, 3)>
    """

    char_length = property_of("CHAR_LENGTH")
    upper_case = property_of("UPPER")
    lower_case = property_of("LOWER")
    init_cap = property_of("INITCAP")
    ascii = property_of("ASCII")
    chr = property_of("CHR")
    reverse = property_of("REVERSE")
    from_base64 = property_of("FROM_BASE64")
    to_base64 = property_of("TO_BASE64")
    url_encode = method_of("URL_ENCODE")
    url_decode = method_of("URL_DECODE")
    md5 = property_of("MD5")
    sha1 = property_of("SHA1")
    sha224 = property_of("SHA224")
    sha256 = property_of("SHA256")
    sha384 = property_of("SHA384")
    sha512 = property_of("SHA512")
    sha2 = method_of("SHA2", "hash_length")
    substring = method_of("SUBSTRING", "begin_index", "length=")
    substr = method_of("SUBSTRING", "begin_index", "length=")
    replace = method_of("REPLACE", "search=", "replacement=")
    translate = method_of("TRANSLATE", "from_str", "to_str")
    lpad = method_of("LPAD", "length", "pad")
    rpad = method_of("RPAD", "length", "pad")
    ltrim = method_of("LTRIM", "trim_str=")
    rtrim = method_of("RTRIM", "trim_str=")
    btrim = method_of("BTRIM", "trim_str=")
    repeat = method_of("REPEAT", "n")
    left = method_of("LEFT", "length")
    right = method_of("RIGHT", "length")
    instr = method_of("INSTR", "s")
    locate = method_of("LOCATE", "s", "pos=")
    overlay = method_of("OVERLAY", "new_string", "starting", "length=")
    position = method_of("POSITION", "haystack=")
    starts_with = method_of("STARTSWITH", "start_expr")
    ends_with = method_of("ENDSWITH", "end_expr")
    regexp = method_of("REGEXP", "regex")
    regexp_count = method_of("REGEXP_COUNT", "regex")
    regexp_replace = method_of("REGEXP_REPLACE", "regex", "replacement")
    regexp_extract = method_of("REGEXP_EXTRACT", "regex", "extract_index=")
    regexp_extract_all = method_of("REGEXP_EXTRACT_ALL", "regex", "extract_index=")
    regexp_instr = method_of("REGEXP_INSTR", "regex")
    regexp_substr = method_of("REGEXP_SUBSTR", "regex")
    split_index = method_of("SPLIT_INDEX", "separator", "index")
    split = method_of("SPLIT", "delimiter")
    str_to_map = method_of("STR_TO_MAP", "list_delimiter=", "key_value_delimiter=")
    encode = method_of("ENCODE", "charset")
    decode = method_of("DECODE", "charset")
    elt = method_of("ELT", "expr", "*exprs")
    parse_url = method_of("PARSE_URL", "part_to_extract", "key=")
    printf = method_of("PRINTF", "*obj")
    inet_aton = method_of("INET_ATON")
    inet_ntoa = method_of("INET_NTOA")

    def concat(self, other: Any) -> Expression:
        """Two texts, one behind the other."""
        return self._called("CONCAT", self, other)

    def trim(self, character: Any = None) -> Expression:
        """Without blanks, or another character, on both sides."""
        return self._trimmed("BOTH", character)

    def trim_leading(self, character: Any = None) -> Expression:
        """Without blanks, or another character, in front."""
        return self._trimmed("LEADING", character)

    def trim_trailing(self, character: Any = None) -> Expression:
        """Without blanks, or another character, at the end."""
        return self._trimmed("TRAILING", character)

    def _trimmed(self, side: str, character: Any) -> Expression:
        mark = self._made(Symbol(side, span=NOWHERE))
        return self._called("TRIM", mark, " " if character is None else character, self)
