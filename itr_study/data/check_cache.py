"""Memory of slow checks: which files were found good, so that nothing is checked twice."""

import hashlib
import logging
import os
from pathlib import Path

from itr_study.files.atomic import read_json, write_json
from itr_study.files.paths import home

VERSION = 3  # raise it when a check gets stricter: what was remembered is then forgotten
log = logging.getLogger(__name__)


class CheckCache:
    """Files of one folder that passed one check, by name, size and time of change (ns).

    Args:    cache: folder of the memory, None = `checks/` in the home of itr_study; check: name
             of the check; folder: folder of the files.
    Only good files are remembered: bad ones are looked at again each time. A file replaced by
    another of the same name, size and time of change is not noticed.
    """

    def __init__(self, cache: Path | None, check: str, folder: Path) -> None:
        digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
        self.path = Path(cache or home() / "checks") / f"{check}-{digest}.json"
        self.good = self._read()
        self.changed = False

    def _read(self) -> dict[str, list[int | str]]:
        if not self.path.is_file():
            return {}
        try:
            saved = read_json(self.path)
        except ValueError as error:  # damaged: nothing is lost but time
            log.warning("checking again, the memory of checks is damaged: %s", error)
            return {}
        fits = isinstance(saved, dict) and saved.get("version") == VERSION
        return saved["good"] if fits and isinstance(saved.get("good"), dict) else {}

    def knows(self, name: str, stat: os.stat_result) -> bool:
        """True if the file passed before and has not changed since."""
        return self.good.get(name, [])[:2] == [stat.st_size, stat.st_mtime_ns]

    def remember(self, name: str, stat: os.stat_result, remarks: tuple[str, ...] = ()) -> None:
        """Note that the file, as it was when `stat` was taken, passed, and what was seen in it."""
        self.good[name] = [stat.st_size, stat.st_mtime_ns, *remarks]
        self.changed = True

    def remarks(self, name: str) -> tuple[str, ...]:
        """What was seen in a file that passed."""
        return tuple(self.good[name][2:])

    def save(self) -> None:
        """Write what is new; a disk that cannot be written costs time later, not this load."""
        if not self.changed:
            return
        try:
            write_json(self.path, {"version": VERSION, "good": self.good})
        except OSError as error:
            log.warning("the next load checks again: %s", error)
