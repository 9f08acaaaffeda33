"""Flickr30k and COCO from Karpathy's JSON and the pictures, or from precomputed features.

Source: Karpathy and Fei-Fei, CVPR 2015 (splits); Young et al., TACL 2014 (Flickr30k);
Lin et al., ECCV 2014 (COCO). Protocols: Flickr30k is tested on 1,000 images. COCO's 5,000 test
images are ranked all together (5K) or in five folds of 1,000 whose results are averaged (1K);
numbers of the two protocols cannot be compared.
Flickr30k contains Flickr8k, its test images included: a model trained on flickr30k must not be
tested on flickr8k unless the shared images are removed.
"""

import json
import os
from pathlib import Path
from typing import Any

from itr_study.data import base, precomputed
from itr_study.data.assemble import Caption, assemble, build_splits
from itr_study.data.base import DataError, DataReport, DatasetRecord, Problem, RetrievalDataset

SPLIT_OF: dict[str, str | None] = {"train": "train", "restval": "train", "val": "dev",
                                   "test": "test"}
OBTAIN = ("It takes dataset_{name}.json (Karpathy's caption_datasets.zip) and the pictures in "
          "images/ ({pictures}), or the files {{split}}_ims.npy, {{split}}_caps.txt and, if there "
          "are any, {{split}}_ids.txt of published features (split: train, dev or val, test).")
TERMS_FLICKR30K = (
    "Flickr30k: for non-commercial research and education only, the photographs remain their "
    "owners' under Flickr's terms of use; cite Young, Lai, Hodosh and Hockenmaier, From Image "
    "Descriptions to Visual Denotations, TACL 2, 2014.")
TERMS_COCO = (
    "COCO: annotations CC BY 4.0, the photographs under Flickr's terms of use; cite Lin et al., "
    "Microsoft COCO: Common Objects in Context, ECCV 2014.")


def load_flickr30k(root: Path | str | None = None, *, features: str | None = None,
                   splits: tuple[str, ...] = base.SPLITS, skip_bad: bool = False,
                   cache: Path | None = None) -> RetrievalDataset:
    """Read Flickr30k: 29,000 / 1,014 / 1,000 images in Karpathy's splits, dev uncut.

    Args:    root: a folder that holds `flickr30k/`, or that folder; features: "precomputed" for
             published region features; splits: which are wanted; skip_bad: leave out pictures
             that cannot be decoded; cache: folder of the memory of checks.
    Raises:  DataError listing everything that is wrong, with the remedy.
    """
    return _load(root, FLICKR30K, COCO,
                 "flickr30k-images, on request at the University of Illinois", TERMS_FLICKR30K,
                 SPLIT_OF, features, splits, skip_bad, cache)


def load_coco(root: Path | str | None = None, *, features: str | None = None,
              restval: bool = True, splits: tuple[str, ...] = base.SPLITS, skip_bad: bool = False,
              cache: Path | None = None) -> RetrievalDataset:
    """Read COCO: 113,287 / 5,000 / 5,000 images in Karpathy's splits, dev uncut.

    Args:    root: a folder that holds `coco/` or `coco5k/`, or that folder; restval: the 30,504
             images of "restval" join train, as in all papers since VSE++; without them train
             has 82,783; the others as in `load_flickr30k`.
    Raises:  DataError listing everything that is wrong, with the remedy.
    """
    return _load(root, COCO, FLICKR30K, "train2014/ and val2014/ of cocodataset.org", TERMS_COCO,
                 SPLIT_OF if restval else SPLIT_OF | {"restval": None}, features, splits, skip_bad,
                 cache)


def _load(root: Path | str | None, wanted: DatasetRecord, other: DatasetRecord, pictures_from: str,
          terms: str, split_of: dict[str, str | None], features: str | None,
          splits: tuple[str, ...], skip_bad: bool, cache: Path | None) -> RetrievalDataset:
    name = wanted.name
    obtain = OBTAIN.format(name=name, pictures=pictures_from)
    marks = (f"dataset_{name}.json", "dataset.json", "*_caps.txt")
    folder = base.find_root(root, name, also=wanted.folders[1:], marks=marks, obtain=obtain)
    if folder.resolve().name in other.folders:  # precomputed files do not tell whose they are
        raise DataError(f"{folder} looks like the folder of {other.name}, not of {name}. {obtain}")
    if features not in (None, "precomputed"):
        raise ValueError(f'features must be None or "precomputed", got {features!r}')
    if not splits or set(splits) - set(base.SPLITS):
        raise ValueError(f"splits must be some of {', '.join(base.SPLITS)}; got {splits!r}")
    if features == "precomputed" or not _json(folder, name) and precomputed.lies_in(folder):
        if split_of != SPLIT_OF:
            raise ValueError("restval=False goes with the JSON and the pictures: the files of "
                             "features do not say which images are of restval. To read those, "
                             "where they are: features=None (--set data_options.features=null)")
        return precomputed.load(name, folder, splits=splits, cache=cache, seen_by=("minilm",),
                                terms=terms)
    report = DataReport()
    images, captions, pictures = _read(_records(folder, name, obtain), folder, split_of, report)
    chosen = {split: images[split] for split in splits}
    used = {image for ids in chosen.values() for image in ids}
    return assemble(name, chosen, [c for c in captions if c.image in used], pictures, report,
                    cache=cache, skip_bad=skip_bad, seen_by=("minilm",), terms=terms)


def read_splits(folder: Path, name: str) -> dict[str, base.Split]:
    """Read texts and image ids of all splits from the JSON alone; DataError as `load_coco`."""
    report = DataReport()
    images, captions, _ = _read(_records(folder, name, OBTAIN), folder, SPLIT_OF, report)
    return build_splits(images, captions, report)


def _json(folder: Path, name: str) -> list[Path]:
    return [p for p in (folder / f"dataset_{name}.json", folder / "dataset.json") if p.is_file()]


def _records(folder: Path, name: str, obtain: str) -> list[dict[str, Any]]:
    paths = _json(folder, name)
    if not paths:
        raise DataError(f"{name}: {folder} holds neither dataset_{name}.json nor dataset.json. "
                        f"{obtain}")
    try:
        content = json.loads(base.read_text(paths[0]))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{paths[0]} is not valid JSON ({error}); obtain it again") from error
    records = content.get("images") if isinstance(content, dict) else None
    if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
        raise DataError(f'{paths[0]}: expected an object with a list "images" of objects, as in '
                        "Karpathy's files")
    if content.get("dataset", name) != name:
        raise DataError(f"{paths[0]} is of data set {content['dataset']!r}, not {name!r}; give "
                        f"the folder of {name}")
    return records


def _read(records: list[dict[str, Any]], folder: Path, split_of: dict[str, str | None],
          report: DataReport) -> tuple[dict[str, list[str]], list[Caption], dict[str, Path]]:
    """Image ids by split, captions, and picture files; unreadable records become errors."""
    images: dict[str, list[str]] = {split: [] for split in base.SPLITS}
    captions: list[Caption] = []
    pictures: dict[str, Path] = {}
    unused = 0
    for number, record in enumerate(records):
        if problem := _record_problem(record):
            report.error("malformed record", str(record.get("filename", f"images[{number}]")),
                         problem)
        elif split_of[record["split"]] is None:
            unused += 1
        else:
            image = str(record.get("cocoid", record["filename"]))
            images[split_of[record["split"]]].append(image)
            pictures[image] = _picture(folder, record)
            captions += [Caption(image, str(s["sentid"]), s["raw"].strip())
                         for s in record["sentences"]]
    if unused:
        report.excluded.append(Problem("in no split", "restval",
                                       f"{unused} images left out by restval=False"))
    report.counts.update(images=len(records), texts=len(captions))
    return images, captions, pictures


def _record_problem(record: dict[str, Any]) -> str | None:
    """What keeps a record from being read: fields, split, sentences out of order; None if fine."""
    if not _is_text(record.get("filename")):
        return 'no "filename"'
    if not isinstance(record.get("filepath") or "", str):
        return f'"filepath" is {record["filepath"]!r}, expected a folder as text, or none'
    if not _is_id(record.get("cocoid", 0)):
        return f'"cocoid" is {record["cocoid"]!r}, expected a number or a text'
    if not _is_text(record.get("split")) or record["split"] not in SPLIT_OF:
        return f"split {record.get('split')!r} is none of {', '.join(SPLIT_OF)}"
    sentences = record.get("sentences")
    if not isinstance(sentences, list):
        return 'no list "sentences"'
    if not all(isinstance(s, dict) and isinstance(s.get("raw"), str) and _is_id(s.get("sentid"))
               for s in sentences):
        return 'a sentence lacks "raw" or "sentid"'
    if "sentids" in record and record["sentids"] != [s["sentid"] for s in sentences]:
        return '"sentids" and "sentences" differ in number or order'
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_id(value: object) -> bool:
    return _is_text(value) or isinstance(value, int) and not isinstance(value, bool)


def _picture(folder: Path, record: dict[str, Any]) -> Path:
    """The picture's file in one of the usual places; the first place where it is in none."""
    part = Path(record.get("filepath") or "") / record["filename"]
    places = (folder / "images" / part, folder / part, folder / "images" / record["filename"],
              folder / "flickr30k-images" / record["filename"])
    return next((place for place in places if os.path.isfile(place)), places[0])


FLICKR30K = DatasetRecord("flickr30k", load_flickr30k, graded_by=("sentence", "cider"),
                          folders=("flickr30k", "f30k", "f30k_precomp"), features="precomputed")
COCO = DatasetRecord("coco", load_coco, folders=("coco", "coco5k", "coco_precomp"),
                     in_folds=("test",), graded_by=("sentence", "cider"), features="precomputed")
