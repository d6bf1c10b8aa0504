from __future__ import annotations

import base64
import json
import zlib
from functools import lru_cache
from typing import Any

from django.db import models

_MARK = "packed:"  # what is stored instead of a long value begins so; the values themselves are objects and lists
_LONG = 1024  # characters of JSON from which packing pays
_LEVEL = 3  # of zlib; 34 KB that repeat themselves become 3.1 in 0.1 ms


class PackedJSON(models.JSONField):
    """JSON that on SQLite lies packed in its row (as one JSON string) where it is long; values read as they were.

    SQLite keeps a row in one piece, so whoever reads or changes a column behind a decision of 34 KB walks over
    it, and each change of the row writes all of it anew. PostgreSQL packs long values itself, beside the row.
    What an older version stored unpacked is read as it is.
    """

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Return what the driver is given."""
        if connection.vendor == "sqlite" and isinstance(value, dict | list):
            text = json.dumps(value, cls=self.encoder)
            return text if len(text) < _LONG else json.dumps(_MARK + _packed(text))
        return super().get_db_prep_value(value, connection, prepared)

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        """Return what stands for a value in a statement; that this is here keeps Django from sending arrays of them.

        Inserting many rows it would, and psycopg escapes each quote in an array by itself: four million of a thousand
        decisions, for so many seconds that PostgreSQL takes the cycle for asleep and ends it.
        """
        return "%s"

    def get_placeholder_sql(self, value: Any, compiler: Any, connection: Any) -> tuple[str, Any]:
        """Return the same with its values, as Django asks since 6.1."""
        return compiler.compile(value) if hasattr(value, "as_sql") else ("%s", (value,))

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return what was stored."""
        found = super().from_db_value(value, expression, connection)
        if isinstance(found, str) and found.startswith(_MARK):
            return json.loads(zlib.decompress(base64.b64decode(found[len(_MARK) :])), cls=self.decoder)
        return found


@lru_cache(maxsize=32)  # a start is told on its row and in its history, equal jobs are told the same
def _packed(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), _LEVEL)).decode()
