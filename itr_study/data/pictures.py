"""A folder of pictures without any text, to be searched with a model trained elsewhere."""

from pathlib import Path

import numpy as np

from itr_study.data.assemble import fingerprint
from itr_study.data.base import DataError, DataReport, RetrievalDataset, Split
from itr_study.data.picture_checks import check_pictures
from itr_study.data.picture_files import SUFFIXES, open_picture

PICTURES = "pictures"  # name of the data set, and of its only split


def load_pictures(folder: Path | str, cache: Path | None = None) -> RetrievalDataset:
    """All pictures below a folder, as one split without texts; their names are their ids.

    Those that cannot be decoded are left out, with the reason, in `report.excluded`.

    Args:    cache: folder of the memory of checks, None = the home.
    Raises:  DataError where there is no folder, or no picture that can be decoded.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; expected a folder of pictures")
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))
             if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")}
    bad, sizes, notes = check_pictures(files, cache)
    ids = tuple(name for name in files if name not in {problem.where for problem in bad})
    if not ids:
        raise DataError(f"{folder} holds no picture that can be decoded ({len(bad)} broken); "
                        f"looked for {', '.join(SUFFIXES)}")
    split = Split(PICTURES, ids, (), (), np.zeros(0, np.int64))
    return RetrievalDataset(
        PICTURES, {PICTURES: split}, lambda image: open_picture(files[image]),
        fingerprint({PICTURES: split}, [(name, sizes[name]) for name in ids]),
        DataReport(counts={"images": len(files)}, excluded=bad, notes=notes))
