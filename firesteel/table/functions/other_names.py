"""Functions of other databases, and what has their place in Flink."""

__all__ = ["OTHER_FUNCTIONS"]

OTHER_FUNCTIONS = {
    "ARRAY_LENGTH": "CARDINALITY(a)",
    "ARRAY_SIZE": "CARDINALITY(a)",
    "CHARINDEX": "POSITION(a IN b)",
    "CONVERT": "CAST(a AS type)",
    "DATE_ADD": "TIMESTAMPADD(DAY, 1, a)",
    "DATE_DIFF": "TIMESTAMPDIFF(DAY, a, b)",
    "DATE_PART": "EXTRACT(DAY FROM a)",
    "DATE_SUB": "TIMESTAMPADD(DAY, -1, a)",
    "DATE_TRUNC": "FLOOR(a TO DAY)",
    "DATEADD": "TIMESTAMPADD(DAY, 1, a)",
    "DATEDIFF": "TIMESTAMPDIFF(DAY, a, b)",
    "DAY": "DAYOFMONTH(a)",
    "EXPLODE": "CROSS JOIN UNNEST(a)",
    "GETDATE": "NOW()",
    "GROUP_CONCAT": "LISTAGG(a)",
    "IIF": "IF(a, b, c)",
    "ISNULL": "a IS NULL",
    "LEN": "CHAR_LENGTH(a)",
    "LENGTH": "CHAR_LENGTH(a)",
    "MEDIAN": "PERCENTILE(a, 0.5)",
    "NVL": "COALESCE(a, b)",
    "RANDOM": "RAND()",
    "REGEXP_LIKE": "REGEXP(a, b)",
    "SIZE": "CARDINALITY(a)",
    "STRING_AGG": "LISTAGG(a)",
    "STRPTIME": "TO_TIMESTAMP(a, 'yyyy-MM-dd')",
    "TO_CHAR": "DATE_FORMAT(a, 'yyyy-MM-dd')",
}
