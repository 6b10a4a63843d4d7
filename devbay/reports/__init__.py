"""Test output becomes records: formats, places in the user's code, verdicts, and what is shown of them."""

from devbay.reports.budget import dense_text, page, present
from devbay.reports.judge import Judged, RunReport, judge
from devbay.reports.verdict import Ending

__all__ = ["Ending", "Judged", "RunReport", "dense_text", "judge", "page", "present"]
