"""Flickr8k: 8,091 photographs with five captions each, 6,000 / 1,000 / 1,000.

Source: Hodosh, Young and Hockenmaier, JAIR 47, 2013.
The published caption file holds lines for pictures that do not exist, one of them under a
malformed name, and 91 pictures are in no split: all are left out and reported.
"""

import re
from pathlib import Path

from itr_study.data.assemble import Caption, assemble
from itr_study.data.assemble import leave_out as without
from itr_study.data.base import DataReport, Problem, RetrievalDataset
from itr_study.data.caption_noise import with_caption_noise
from itr_study.data.flickr8k_judgements import CROWD, EXPERT, read_crowdflower, read_expert
from itr_study.data.flickr8k_published import REMEDY, differences
from itr_study.data.judgements import Judgements
from itr_study.data.near_duplicates import to_leave_out
from itr_study.data.picture_files import SUFFIXES
from itr_study.data.record import DatasetRecord
from itr_study.data.roots import find_part, find_root, read_lines

TOKENS = "Flickr8k.token.txt"
PICTURES = ("images", "Flicker8k_Dataset", "Flickr8k_Dataset", "Images")
OBTAIN = (f"Flickr8k is {TOKENS}, Flickr_8k.{{train,dev,test}}Images.txt (Flickr8k_text.zip) and "
          "the photographs in images/ (Flickr8k_Dataset.zip); its authors at the University of "
          "Illinois hand it out on request, and mirrors of the two archives exist.")
TERMS = ("Flickr8k: for non-commercial research and education only, the photographs remain their "
         "owners' under Flickr's terms of use; cite Hodosh, Young and Hockenmaier, Framing Image "
         "Description as a Ranking Task, JAIR 47, 2013.")
LINE = re.compile(r"(?P<image>[^#\t]+)#(?P<number>\d+)\t(?P<text>.*)")


def load(root: Path | str | None = None, *, skip_bad: bool = False, as_published: bool = True,
         cache: Path | None = None, leave_out: str = "nothing", caption_noise: float = 0.0,
         noise_seed: int = 0) -> RetrievalDataset:
    """Read Flickr8k with its standard splits, after checking all of it.

    Args:    root: a folder that holds `flickr8k/`, or that folder; skip_bad: leave out pictures
             that cannot be decoded; as_published: refuse other splits, captions and judgements
             than those published, else note them in the report; cache: folder of the memory of
             checks, None = the home; leave_out: of training images, "near_duplicates", as many
             others, "as_many_others", or "nothing"; caption_noise, noise_seed: see
             `with_caption_noise`.
    Raises:  DataError listing everything that cannot be explained, with the remedy.
    Leakage: sentence encoders such as MiniLM were trained on Flickr30k, which contains Flickr8k:
             they have seen these captions, those of the test split included (`seen_by`).
    """
    root = find_root(root, "flickr8k", marks=(TOKENS, f"Flickr8k_text/{TOKENS}"), obtain=OBTAIN)
    report = DataReport(remedy=f"Obtain these files again, then load again. {OBTAIN}")
    folder = find_part(root, PICTURES, "Flickr8k: folder of the photographs")
    on_disk = {p.name for p in folder.iterdir() if not p.name.startswith(".")}
    images = {split: _names(root, split) for split in ("train", "dev", "test")}
    captions = _captions(_text(root, TOKENS), report)
    report.counts.update(images=len(on_disk), texts=len(captions))
    captions = _explain(images, captions, on_disk, report)
    judgements = _judgements(root)
    if differing := differences(images, captions, judgements):
        (report.errors if as_published else report.notes).extend(differing)
        report.remedy += f" {REMEDY}" if as_published else ""
    dropped = to_leave_out(leave_out, images["train"])
    report.excluded += [Problem(leave_out, *pair) for pair in dropped.items()]
    images, captions = without(set(dropped), images, captions)
    pictures = {image: folder / image for ids in images.values() for image in ids}
    dataset = assemble("flickr8k", images, captions, pictures, report, cache=cache,
                       skip_bad=skip_bad, seen_by=("minilm",), terms=TERMS)
    dataset.judgements = judgements
    if dropped:
        dataset.part_of = load(root, skip_bad=skip_bad, as_published=as_published, cache=cache)
    return with_caption_noise(dataset, caption_noise, noise_seed)


def _judgements(root: Path) -> dict[str, Judgements]:
    """The collections of human judgements that are there: they are published apart."""
    readers = {EXPERT: read_expert, CROWD: read_crowdflower}
    collections = [read(root) for file, read in readers.items()
                   if (root / file).is_file() or (root / "Flickr8k_text" / file).is_file()]
    return {collection.name: collection for collection in collections}


def _text(root: Path, name: str) -> Path:
    return find_part(root, (name, f"Flickr8k_text/{name}"), f"Flickr8k: {name}")


def _names(root: Path, split: str) -> list[str]:
    lines = read_lines(_text(root, f"Flickr_8k.{split}Images.txt"))
    return [line.strip() for line in lines if line.strip()]


def _captions(path: Path, report: DataReport) -> list[Caption]:
    """Captions of the token file; lines that are none are errors."""
    captions = []
    for number, line in enumerate(read_lines(path), start=1):
        parts = LINE.fullmatch(line)
        if parts:
            text_id = f"{parts['image']}#{parts['number']}"
            captions.append(Caption(parts["image"], text_id, parts["text"].strip()))
        else:
            report.errors.append(Problem("malformed line", f"{path.name}:{number}",
                                         f"expected name.jpg#i<TAB>caption, got {line[:60]!r}"))
    return captions


def _explain(images: dict[str, list[str]], captions: list[Caption], on_disk: set[str],
             report: DataReport) -> list[Caption]:
    """Captions of images in a split; what belongs to no split is left out with its reason.

    Nothing that a split needs is left out here: a picture of a split that is missing stays in
    and is refused later.
    """
    in_split = {image for ids in images.values() for image in ids}
    for image in sorted(on_disk - in_split):
        report.excluded.append(Problem("in no split", image, "the standard splits leave it out"))
    for caption in captions:
        if caption.image in in_split or caption.image in on_disk:
            continue
        malformed = not caption.image.lower().endswith(SUFFIXES)
        kind = "malformed name" if malformed else "caption of an unknown image"
        report.excluded.append(Problem(kind, caption.text_id,
                                       "no such picture exists and no split asks for it"))
    return [caption for caption in captions if caption.image in in_split]


FLICKR8K = DatasetRecord(
    "flickr8k", load, folders=("flickr8k",), graded_by=("sentence", "cider"),
    human_columns={"test": ("expert_tau_c", "crowdflower_tau_b")},
    judged_by="the three experts of Flickr8k",
    kept_judgements=("expert",))  # 11 KB a run; the crowd's 48,000 pairs would be 94
