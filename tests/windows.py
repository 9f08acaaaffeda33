"""What Windows refuses, simulated: a file that a process has mapped is neither renamed nor replaced
nor deleted."""

import os
from pathlib import Path

import pytest

MAPS = Path("/proc/self/maps")
needs_maps = pytest.mark.skipif(not MAPS.exists(), reason="needs Linux's list of mapped files")


def mapped(path: Path | str) -> bool:
    """Whether this process has mapped a file."""
    return any(line.endswith(f" {Path(path).resolve()}") for line in MAPS.read_text().splitlines())


def as_on_windows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make `os.replace` refuse mapped files; the names of those it refused."""
    real, refused = os.replace, []

    def replace(source, target):
        for path in (source, target):
            if mapped(path):
                refused.append(Path(path).name)
                raise PermissionError(13, "the file is in use", str(path))
        return real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    return refused
