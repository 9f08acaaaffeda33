"""Make the site: python -m tools.site [--dataset scenes] [--folder html]."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.files.paths import check_writable, project_root
from tools.site.build import build, check_replaceable
from tools.site.record import kept_live


def main() -> None:
    """Read the arguments, make the site, and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="scenes", help="whose executed notebooks are shown")
    parser.add_argument("--folder", type=Path, default=project_root() / "html")
    given = parser.parse_args()
    check_choice("dataset", given.dataset, DATASETS)
    check_writable(given.folder, "Name another folder for the site: --folder FOLDER")
    check_replaceable(given.folder)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as work:  # a build that fails leaves the former site
        first = build(given.dataset, Path(work) / "site", Path(work) / "source", kept_live)
        shutil.rmtree(given.folder, ignore_errors=True)
        shutil.copytree(first.parent, given.folder)
    size = sum(path.stat().st_size for path in given.folder.rglob("*") if path.is_file())
    print(f"{size / 1e6:.0f} MB in {time.monotonic() - begin:.0f} s. "
          f"Open {given.folder.resolve() / first.name}")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(str(error))
