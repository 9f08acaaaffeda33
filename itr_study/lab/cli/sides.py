"""Read what others measured: numpy's files, and results of boards in JSON.

    file.npy     scores (I, T)
    file.npz     scores; or images (I, D) and texts (T, D); or i2t (I,) and t2i (T,), ranks from 1
    file.json    results as MTEB or CLIP_benchmark write them

The seed of a file is the number in its name (seed3.npy, run_3.npz). What is wrong is said with the
name of the file.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from itr_study.evaluation.protocol import described, owners, products, recalled, score
from itr_study.evaluation.table import percent, retrieval_table
from itr_study.lab.ledger.rivals import Runs
from itr_study.metrics import Ranks, Scores

KINDS = (".npy", ".npz", ".json")
IDS = "ids.csv"  # beside the files of a side, if there is one


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of the file before what is wrong with it."""
    try:
        yield
    except (ValueError, EOFError, BadZipFile, KeyError) as error:
        raise ValueError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error


def read_array(path: Path) -> Any:
    """Open a .npy file without reading it, or a .npz file. Raises: ValueError naming the file."""
    with naming(path):
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"is no array of numbers that numpy.save wrote ({error})") from error


def read_ids(path: Path) -> np.ndarray:
    """Read the image of each text, (T,) int, from the column `image` of a CSV file.

    A line is a text, in the order of the columns of the scores. Whole numbers from 0 on are rows of
    the scores; other ids are rows as they first come, in which those from 1 on must be in order.
    """
    with naming(path):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if "image" not in table or table.empty:
            raise ValueError("needs a column `image`, the image of each text, and a line a text; "
                             f"found {', '.join(table) or 'nothing'}, {len(table)} lines")
        ids = table["image"]
        if ids.str.fullmatch(r"\d{1,9}(\.0+)?").all():  # 3.0: of a table that lacked some
            ids = ids.astype(float).to_numpy(int)
            least, dense = ids.min(), np.ptp(ids) + 1 == len(np.unique(ids))
            if dense and least == 0:
                return ids
            if dense and (np.diff(pd.unique(ids)) < 0).any():
                raise ValueError(f"rows are numbered from 0, these from {least}: take {least} off")
        return pd.factorize(ids)[0]


def read_side(pattern: str, owner: np.ndarray | None = None,
              relevance: np.ndarray | None = None) -> tuple[Runs, list[str]]:
    """Read the runs of one model: a file, a folder, or a pattern such as "runs_a/*.npy".

    Args: owner: (T,), as of `read_ids`; None: from ids.csv beside the files, else equally many
        texts an image. relevance: (I, T), of score matrices.
    Returns: the runs, and what is to be known of their protocol.
    Raises: ValueError: no file, one that is none of KINDS, two of one seed, a mistake of protocol.
    """
    found = map(Path, sorted(glob(pattern)))
    paths = [inner for path in found for inner in (
        sorted(path.iterdir()) if path.is_dir() else [path]) if inner.suffix in KINDS]
    if not paths:
        raise ValueError(f"no file of {', '.join(KINDS)} at {pattern!r}; give a file, a folder, or "
                         "a pattern in quotes, such as 'runs_a/*.npy'")
    beside = paths[0].parent / IDS
    if owner is None and beside.is_file():
        owner = read_ids(beside)
    given = owner
    tables: dict[str, dict[str, float]] = {}
    ranks: dict[str, Ranks] = {}
    notes: list[str] = []
    for path in paths:
        seed = seed_of(path)
        with naming(path):
            if path.suffix == ".json":
                table, best = board_table(json.loads(path.read_text(encoding="utf-8"))), None
            else:
                table, told, best, image = measured(read_array(path), given, relevance)
                if owner is not None and len(owner) != len(image):
                    raise ValueError(f"has {len(image):,} texts, those before it {len(owner):,}: "
                                     "measure all runs on the same test set")
                notes, owner = notes + told, image
            if not table.keys().isdisjoint(tables.get(seed, {})):
                raise ValueError(f"a second file of seed {seed} at {pattern!r}; name files by "
                                 "their seeds, such as seed0, seed1")
        tables.setdefault(seed, {}).update(table)
        ranks |= {seed: best} if best else {}
    refuse_copies(pattern, ranks)
    name = paths[0].stem if len(paths) == 1 and paths[0].suffix != ".json" else \
        paths[0].absolute().parent.name
    return Runs(name, tables, ranks if len(ranks) == len(tables) else {}, owner), notes


def seed_of(path: Path) -> str:
    """Read the seed in the name of a file, or of its folder; a result of a board may have none.

    Example:
        >>> [seed_of(Path(name)) for name in ("a/seed_3_5k.npy", "a/run12.npz", "mine.npy")]
        ['3', '12', 'mine']
        >>> seed_of(Path("seed1/Flickr30kT2IRetrieval.json")), seed_of(Path("Flickr30kI2T.json"))
        ('1', '0')
    """
    found = re.findall(r"seed[ _=-]?(\d+)", f"{path.parent.name}/{path.stem}", re.I)
    if path.suffix == ".json":
        return found[-1] if found else "0"
    return (found or re.findall(r"\d+", path.stem) or [path.stem])[-1]


def measured(array: Any, owner: np.ndarray | None, relevance: np.ndarray | None
             ) -> tuple[dict[str, float], list[str], Ranks, np.ndarray]:
    """Measure a matrix, embeddings or ranks; give the owner of each text, too."""
    if isinstance(array, Mapping):  # of a .npz file
        names = set(array)
        best = next((both for both in (("i2t", "t2i"), ("test_i2t", "test_t2i"))
                     if names.issuperset(both)), None)
        if best:
            found = Ranks(*(np.asarray(array[name]) for name in best))
            owner = owners((len(found.i2t), len(found.t2i)), owner)
            return retrieval_table(found), described(owner, len(found.i2t)), found, owner
        if {"images", "texts"} <= names:
            array = products(array["images"], array["texts"], None)
        elif "scores" in names:
            array = array["scores"]
        else:
            raise ValueError("must hold scores, or images and texts, or i2t and t2i; found "
                             f"{', '.join(sorted(names)) or 'nothing'}")
    owner = owners(tuple(array.shape), owner)
    card = recalled(Scores.of(array).i2t, owner) if relevance is None else score(
        array, owner, relevance)
    return card.table, card.protocol, card.ranks, owner


def board_table(result: Any) -> dict[str, float]:
    """Read the metrics, in percent, of a result of CLIP_benchmark or MTEB, each after its task."""
    if isinstance(result, dict) and isinstance(result.get("metrics"), dict):
        parts = [(result.get("dataset", "task"), result["metrics"])]
    elif isinstance(result, dict) and isinstance(result.get("scores"), dict):
        parts = [(" ".join([result.get("task_name", "task"), *[split] * (split != "test"),
                            *({str(part.get("hf_subset", "default"))} - {"default"})]), part)
                 for split, of_split in result["scores"].items() for part in of_split]
    else:
        raise ValueError("is no result of MTEB (task_name, scores) or CLIP_benchmark (dataset, "
                         "metrics)")
    table = {f"{task} {name}": value for task, part in parts for name, value in part.items()
             if type(value) in (int, float) and not name.startswith("nauc")}
    if bad := [name for name, value in table.items() if math.isnan(value)]:
        raise ValueError(f"{bad[0]} is NaN: evaluate that model again")
    if not any(-1 <= value <= 1 for value in table.values()):
        raise ValueError("holds no metric between -1 and 1; is it percent? Boards write shares")
    return {name: percent(value) for name, value in table.items() if -1 <= value <= 1}


def refuse_copies(where: str, ranks: Mapping[str, Ranks]) -> None:
    """Raise ValueError where two runs rank every query alike: they are one file twice."""
    seen: dict[bytes, str] = {}
    for seed, best in ranks.items():
        content = best.i2t.tobytes() + best.t2i.tobytes()
        if content in seen and max(best.i2t.max(), best.t2i.max()) > 1:
            raise ValueError(f"{where}: {seen[content]} and {seed} are the same run, every rank is "
                             "equal; give each run once")
        seen[content] = seed


def check_sides(sides: list[Runs]) -> list[str]:
    """Refuse models that were not measured alike; name what looks as if they were not.

    Raises: ValueError: other sizes, other ids, the same run on two sides, no metric in common.
    """
    first, *others = sides
    for other in others:
        a, b = (side.owner for side in (first, other))
        if a is not None and b is not None and (len(a), a.max()) != (len(b), b.max()):
            raise ValueError(f"{first.name} has {a.max() + 1:,} images and {len(a):,} texts, "
                             f"{other.name} {b.max() + 1:,} and {len(b):,}: measure both on the "
                             "same test set")
        if a is not None and b is not None and (a != b).any():
            raise ValueError(f"{IDS} of {first.name} and {other.name} differ: other queries, or "
                             "another order; put both in one order")
        refuse_copies(f"{first.name} and {other.name}", {
            f"{side.name}/{seed}": best for side in (first, other)
            for seed, best in side.ranks.items()})
        if not set(metrics_of([first, other])):
            raise ValueError(f"{first.name} and {other.name} have no metric in common: are they "
                             "results of one task?")
    return [note for other in others for note in unlike(first, other)]


def metrics_of(sides: list[Runs]) -> list[str]:
    """List the metrics that all runs of all sides have, in the order of the first."""
    tables = [table for side in sides for table in side.tables.values()]
    return [name for name in tables[0] if all(name in table for table in tables)]


def unlike(a: Runs, b: Runs) -> Iterator[str]:
    """Name what tells of another order: ranks of chance; hard texts that are easy for the other."""
    from scipy import stats

    if not (a.ranks and b.ranks) or len(a.owner) < 100:
        return
    hard = [np.mean([np.log(best.t2i) for best in side.ranks.values()], axis=0) for side in (a, b)]
    n_images = a.owner.max() + 1
    shares = [np.exp(logs.mean()) / n_images for logs in hard]  # by chance about 1 / e
    for side, share in zip((a, b), shares, strict=True):
        if share > 0.25:
            yield (f"{side.name} finds images as chance does: are rows, columns or ids in another "
                   "order?")
    if max(shares) < 0.125 and min(map(np.ptp, hard)) > 0 and (
            stats.spearmanr(*hard).statistic < 3 * n_images ** -0.5):
        yield (f"which texts are hard for {a.name} has nothing to do with which are for {b.name}: "
               "are the queries in another order?")
