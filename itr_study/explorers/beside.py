"""Work beside the page: in a thread, so that the page goes on and can say how far it is."""

import logging
import threading
from collections.abc import Callable

from itr_study.explorers.heard import brief
from itr_study.progress import Show

POLL = 1000  # ms between a page's looks at something that goes on
LOG = logging.getLogger(__name__)


class Beside:
    """One piece of work at a time, how much of it is done, and why the last could not be.

    Args:    failed: what is said first where it could not be done, such as "“Search” could not be
             opened".
    """

    def __init__(self, failed: str) -> None:
        self.failed, self.failure, self.share = failed, "", 0.0
        self.thread: threading.Thread | None = None

    @property
    def at_work(self) -> bool:
        """Whether it is going on."""
        return self.thread is not None and self.thread.is_alive()

    def begin(self, work: Callable[[Show], None], total: float = 1.0) -> None:
        """Do this, unless something is being done already.

        Args:    work: is given what it may tell how much of `total` is done, as
                 `progress.counting` gives it.
        """
        if self.at_work:
            return
        self.share, self.failure = 0.0, ""

        def show(done: float, note: str = "") -> None:
            self.share = done / total

        self.thread = threading.Thread(target=self._do, args=(work, show), daemon=True)
        self.thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        if self.thread is not None:
            self.thread.join(seconds)

    def check(self) -> None:
        """Raises: ValueError, once, where the last work could not be done."""
        if self.failure:
            failure, self.failure = self.failure, ""
            raise ValueError(failure)

    def _do(self, work: Callable[[Show], None], show: Show) -> None:
        try:
            work(show)
        except Exception as error:
            LOG.exception(self.failed)
            self.failure = brief(f"{self.failed}. {type(error).__name__}: {error}")
