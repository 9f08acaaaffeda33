"""Everything that trains or measures, on a simulated device: the tests of `on_sim*.py`.

They run in a process of their own. Once a device is there, torch's backward starts a thread for it,
and a process with such a thread cannot be forked and train, which tests/test_faults.py does.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_all_on_the_simulated_device():
    files = (f"tests/on_sim{part}.py" for part in ("", "_device", "_configs"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=os.environ,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
