"""What devbay must remember: one SQLite database per home, owned by the daemon."""

from devbay.store.database import Database
from devbay.store.records import (
    BayRecord,
    GrantRecord,
    PortRecord,
    RepositoryRecord,
    RunRecord,
    RunTestRecord,
    TemplateRecord,
)
from devbay.store.store import Store

__all__ = [
    "BayRecord",
    "Database",
    "GrantRecord",
    "PortRecord",
    "RepositoryRecord",
    "RunRecord",
    "RunTestRecord",
    "Store",
    "TemplateRecord",
]
