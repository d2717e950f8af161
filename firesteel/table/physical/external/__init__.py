"""Tables of CREATE TABLE: what each connector makes of their options."""

__all__: list[str] = []
