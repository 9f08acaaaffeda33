"""CUB Captions: 11,788 photographs of 200 species of birds, with ten sentences each.

Source: Wah et al., 2011 (CUB-200-2011, the photographs); Reed et al., CVPR 2016 (the sentences);
Xian et al., CVPR 2017 (which species are seen); Chun et al., CVPR 2021 (PCME: retrieval by class).
A sentence about one bird suits all of its species, so runs are measured by class, too: an image
matches every text of its class (`metrics.class_based`). In training another bird of the species is
a negative. (PCME's batches hold one pair of each class, so that it never meets one.)
"""

from collections import Counter
from pathlib import Path

from itr_study.checks import check_choice
from itr_study.data import base
from itr_study.data.assemble import Caption, assemble
from itr_study.data.base import DataError, DataReport, DatasetRecord, Problem, RetrievalDataset
from itr_study.data.flickr8k import KIND, note_differences

PHOTOGRAPHS, REED, TEXTS = "CUB_200_2011", "cvpr2016_cub", "text_c10"
TABLES = ("images.txt", "image_class_labels.txt", "classes.txt")
# Where dev comes from -> the lists that split, by Xian's names or by Reed's.
LISTS = {"classes": {"train": ("trainclasses1.txt", "trainclasses.txt"),
                     "dev": ("valclasses1.txt", "valclasses.txt"), "test": ("testclasses.txt",)},
         "images": {"train": ("trainvalclasses.txt",), "dev": ("seen_test_images.txt",),
                    "test": ("testclasses.txt",)}}
IMAGES, CLASSES, SENTENCES = 11_788, 200, 10
SPECIES = {"classes": {"train": 100, "dev": 50, "test": 50}, "images": {"train": 150, "test": 50}}
OBTAIN = (f"It takes {PHOTOGRAPHS}/ (Caltech's archive CUB_200_2011.tgz), {TEXTS}/ with a file of "
          f"ten lines <class>/<picture>.txt for each picture (the archive {REED} of Reed et al., "
          "whole or this folder of it), and lists of classes (testclasses.txt and others), of Xian "
          "et al. as in PCME's repository, or of Reed et al.")
TERMS = ("CUB-200-2011: for non-commercial research and education only, the photographs remain "
         "their owners'; cite Wah, Branson, Welinder, Perona and Belongie, The Caltech-UCSD "
         "Birds-200-2011 Dataset, 2011, and for the sentences Reed, Akata, Schiele and Lee, "
         "Learning Deep Representations of Fine-Grained Visual Descriptions, CVPR 2016.")


def load(root: Path | str | None = None, *, dev: str = "classes", as_published: bool = True,
         skip_bad: bool = False, cache: Path | None = None) -> RetrievalDataset:
    """Read CUB Captions in the splits of zero-shot learning: no species of test is seen before.

    In the folder lie `CUB_200_2011/`, and `text_c10/` and the lists of classes, all of these in
    `cvpr2016_cub/` or beside it. Lists beside it are taken before those inside: papers on retrieval
    take Xian's, Reed's name other species. CUB's own train_test_split.txt is of classification (all
    species are seen) and not read.

    Args:    root: a folder that holds `cub/`, or that folder; dev: "classes" (train 100 species,
             dev 50 others) or "images" (train the 150 species that published numbers are trained
             on, dev the pictures of them that seen_test_images.txt names); as_published: refuse
             other numbers of pictures, species and sentences than those published, else note
             them; skip_bad: leave out pictures that cannot be decoded; cache: folder of the memory
             of checks, None = the home.
    Raises:  DataError listing all files that are missing, else everything that is wrong in them.
    """
    check_choice("dev", dev, LISTS)
    root = base.find_root(root, "cub", marks=(PHOTOGRAPHS,), obtain=OBTAIN)
    report = DataReport(remedy=f"Obtain or correct these files, then load again. {OBTAIN}")
    paths = _paths(root, dev, report)
    class_of = _classes(paths, report)
    species = {split: base.read_names(paths[split]) for split in SPECIES[dev]}
    images = _splits(species, class_of, report)
    if dev == "images":
        images = _dev_images(base.read_names(paths["dev"]), images, class_of, report)
    captions = _captions(paths[TEXTS], class_of, report)
    used = {image for ids in images.values() for image in ids}
    captions = [caption for caption in captions if caption.image in used]
    report.counts.update(images=len(class_of), texts=len(captions),
                         classes=len(set(class_of.values())))
    note_differences(_differences(class_of, species, SPECIES[dev], captions), as_published, report)
    pictures = {image: paths["images"] / image for image in used}
    dataset = assemble("cub", images, captions, pictures, report, cache=cache, skip_bad=skip_bad,
                       terms=TERMS)
    dataset.classes = class_of
    return dataset


def _paths(root: Path, dev: str, report: DataReport) -> dict[str, Path]:
    """Where each file and folder lies; DataError naming all that are missing."""
    lists = root if (root / "testclasses.txt").is_file() else root / REED
    places = {name: (root / PHOTOGRAPHS / name,) for name in (*TABLES, "images")}
    places[TEXTS] = (root / TEXTS, root / REED / TEXTS)
    places |= {split: tuple(lists / name for name in files) for split, files in LISTS[dev].items()}
    found = {key: next((p for p in paths if p.exists()), None) for key, paths in places.items()}
    for key, paths in places.items():
        if found[key] is None:
            names = " or ".join(path.relative_to(root).as_posix() for path in paths)
            report.error("missing", names, f"not in {root}")
    report.refuse_errors()
    return found


def _table(path: Path, report: DataReport) -> dict[str, str]:
    """Number -> value, of lines of both; an empty line says nothing, any other is an error."""
    table: dict[str, str] = {}
    for number, line in enumerate(base.read_lines(path), start=1):
        match line.split():
            case []:
                continue
            case [key, *_] if key in table:
                report.error("malformed line", f"{path.name}:{number}", "its number stands above")
            case [key, value]:
                table[key] = value
            case _:
                report.error("malformed line", f"{path.name}:{number}",
                             f"expected two words: {line!r}")
    return table


def _classes(paths: dict[str, Path], report: DataReport) -> dict[str, str]:
    """Image -> class, in the order of images.txt: an image is named by its path, class first."""
    images, labels, names = (_table(paths[name], report) for name in TABLES)
    class_of = {image: image.rpartition("/")[0] for image in images.values()}
    for number, image in images.items():
        label = labels.get(number)
        if label not in names:
            what = "no class" if label is None else f"class {label}, which classes.txt lacks"
            report.error("unknown class", image, f"{TABLES[1]} gives it {what}")
        elif names[label] != class_of[image]:
            report.error("unknown class", image, f"it is labelled {names[label]}")
    report.errors += [Problem("duplicate image id", image, f"twice in {TABLES[0]}")
                      for image, _ in base.repeated(images.values())]
    report.errors += [Problem("label of an unknown image", number, f"{TABLES[0]} lacks this number")
                      for number in labels if number not in images]
    return class_of


def _splits(species: dict[str, list[str]], class_of: dict[str, str], report: DataReport
            ) -> dict[str, list[str]]:
    """Image ids by split, in the order of images.txt; each class must be known and in one list."""
    known, split_of = set(class_of.values()), {}
    for split, names in species.items():
        for name in names:
            if name not in known:
                report.error("unknown class", name, f"{split} lists it, no picture is of it")
            if name in split_of:
                report.error("overlapping class splits", name,
                             f"listed in {split_of[name]} and in {split}")
            split_of.setdefault(name, split)
    report.excluded += [Problem("in no split", name, "no list names this class")
                        for name in sorted(known - set(split_of))]
    return {split: [image for image, name in class_of.items() if split_of.get(name) == split]
            for split in species}


def _dev_images(listed: list[str], images: dict[str, list[str]], class_of: dict[str, str],
                report: DataReport) -> dict[str, list[str]]:
    """The listed training images as dev; PCME's list has some of test, too, which stay there."""
    report.errors += [Problem("unknown image", image, f"dev lists it, {TABLES[0]} does not")
                      for image in listed if image not in class_of]
    chosen, tested = set(listed), set(images["test"])
    report.notes += [Problem("listed for dev, stays in test", image, "its class is one of test")
                     for image in listed if image in tested]
    return {"train": [image for image in images["train"] if image not in chosen],
            "dev": [image for image in images["train"] if image in chosen],
            "test": images["test"]}


def _captions(folder: Path, class_of: dict[str, str], report: DataReport) -> list[Caption]:
    """The sentences of all text files, image by image; empty lines are none."""
    files = {path.relative_to(folder).with_suffix("").as_posix(): path
             for path in folder.glob("*/*.txt") if not path.name.startswith(".")}
    image_of = {image.rpartition(".")[0]: image for image in class_of}
    for stem in sorted(files.keys() - image_of):
        report.error("text of an unknown picture", f"{TEXTS}/{stem}.txt",
                     f"{TABLES[0]} has none of this name")
    captions = []
    for stem, image in image_of.items():
        try:
            lines = base.read_lines(files[stem]) if stem in files else []
        except DataError as error:
            report.error("unreadable text", f"{TEXTS}/{stem}.txt", str(error))
        else:
            captions += [Caption(image, f"{image}#{number}", text.strip())
                         for number, text in enumerate(lines) if text.strip()]
    return captions


def _differences(class_of: dict[str, str], species: dict[str, list[str]],
                 expected: dict[str, int], captions: list[Caption]) -> list[Problem]:
    """Where numbers differ from those published; images without any sentence are found later."""
    counts = [("images.txt", "pictures", IMAGES, len(class_of)),
              ("images.txt", "classes", CLASSES, len(set(class_of.values())))]
    counts += [(f"the list of {split}", "classes", expected[split], len(names))
               for split, names in species.items()]
    counts += [(image, "sentences", SENTENCES, found)
               for image, found in Counter(c.image for c in captions).items()]
    return [Problem(KIND, where, f"expected {wanted:,} {what}, found {found:,}")
            for where, what, wanted, found in counts if wanted != found]


CUB = DatasetRecord("cub", load, folders=("cub",), by_class=True)
