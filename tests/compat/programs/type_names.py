"""What type information is called, as a class and as text."""

from firesteel.common import Types


def main() -> None:
    for type_info in (
        Types.STRING(),
        Types.BIG_DEC(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.TUPLE([Types.STRING(), Types.INT()]),
        Types.ROW([Types.LONG(), Types.BOOLEAN()]),
        Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.FLOAT()]),
        Types.LIST(Types.INT()),
        Types.MAP(Types.STRING(), Types.DOUBLE()),
        Types.PRIMITIVE_ARRAY(Types.INT()),
        Types.BASIC_ARRAY(Types.STRING()),
        Types.SQL_TIMESTAMP(),
    ):
        print(type(type_info).__name__, type_info)


if __name__ == "__main__":
    main()
