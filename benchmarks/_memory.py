"""How much memory a process has had at most, on every system."""

import sys

import psutil


def peak_mb() -> float:
    """Highest resident size of this process so far, in MB."""
    if sys.platform == "linux":  # not getrusage: it begins with the size of the parent
        with open("/proc/self/status", encoding="ascii") as status:
            line = next(line for line in status if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS
