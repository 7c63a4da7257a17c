"""Columns of tables; for classes of views, and for verbs that need no pydantic model."""

from collections.abc import Callable, Mapping
from typing import Any

from fanout.values import Value

Object = Mapping[str, Any]


class TableColumn(Value):
    """Column of a table: its head in capitals, and the cell that it shows of an object.

    `cell` is the path of a field, such as `status.state`, or a function. Of a list of objects a
    path goes through the first; of a list of texts all are shown.

    On a terminal that is too narrow, cells of columns with a `cut_width` are cut to it; then
    columns with a high `priority` are left out, those to the right before those to the left.
    """

    head: str
    cell: str | Callable[[Object], object]
    wide: bool = False  # only with -o wide
    priority: int = 1  # 0: identifies the row
    cut_width: int = 0  # of cells that are sentences or lists, not names
    # Cell of an object without the field. An age that is not on record is `<unknown>`, as in
    # kubectl; `<none>`, which "" is shown as, is that of something that does not exist yet.
    absent: str = ""

    @property
    def reader(self) -> Callable[[Object], object]:
        """Function that returns the cell of an object."""
        if not isinstance(self.cell, str):
            return self.cell
        path, absent = self.cell.split("."), self.absent

        def read_field(item: Object) -> object:
            value: Any = item
            for key in path:
                if isinstance(value, list):
                    value = value[0] if value else None
                value = value.get(key) if value is not None else None
            if value is None:
                return absent
            return ",".join(value) if isinstance(value, list) else value

        return read_field
