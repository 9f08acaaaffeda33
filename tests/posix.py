"""Tests that need what Windows does not have."""

import os

import pytest

posix_only = pytest.mark.skipif(os.name == "nt", reason="needs the signals, forks, limits or "
                                "programs of POSIX")
