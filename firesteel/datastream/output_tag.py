"""Names for side outputs."""

from __future__ import annotations

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types

__all__ = ["OutputTag"]


class OutputTag:
    """Names a side output. Tags of one name are equal, whatever their types.

    A list of types stands for a row of them, and no type for anything that can be pickled.

    >>> late = OutputTag("late", Types.STRING())
    >>> late == OutputTag("late"), late.type_info
    (True, STRING)
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: TypeInformation | list[TypeInformation] | None = None) -> None:
        # ValueError and TypeError rather than ProgramError: programs written for PyFlink catch those.
        if not tag_id:
            raise ValueError("An OutputTag needs a name that is not empty.")
        self.tag_id = tag_id
        self.type_info: TypeInformation
        if type_info is None:
            self.type_info = Types.PICKLED_BYTE_ARRAY()
        elif isinstance(type_info, list):
            self.type_info = RowTypeInfo(type_info)
        elif isinstance(type_info, TypeInformation):
            self.type_info = type_info
        else:
            raise TypeError(
                f"The type of OutputTag '{tag_id}' must be a type such as Types.STRING(), a list of types "
                f"or None, got {type(type_info).__name__}."
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r}, {self.type_info})"
