"""What one line of the doctor's report holds."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One line of the report.

    States: "ok"; "note" (works, but the reader should know); "broken" (must be mended).
    """

    topic: str
    state: str
    text: str
