"""Who judges label sources: the experts and the crowd of Flickr8k, the raters of CxC, or the exact
relevance of generated data.

A judge holds rated pairs, and knows how a label source scores them and how scores are compared with
ratings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from itr_study.data.base import DataError, Judgements, RetrievalDataset, find_root
from itr_study.data.batches import EncodedSplit
from itr_study.data.cxc import Crisscrossed, read_cxc
from itr_study.data.precomputed import read_captions
from itr_study.encoders import TEXT_ENCODERS
from itr_study.encoders.ngrams import Ngrams, NgramVectors
from itr_study.features.dataset import caption_vectors, exact_relevance, judged_pairs
from itr_study.features.texts import encode_label_vectors
from itr_study.files.paths import home
from itr_study.lab.label_quality.pairs import image_relevance, pair_relevance, text_relevance
from itr_study.metrics.eccv import TruthSets, read_eccv
from itr_study.metrics.human import cxc_correlation, human_correlation

# The captions of COCO, which CxC and ECCV Caption judge, and splits with label vectors alone.
#
# What is missing on a machine is recorded with its reason, never passed over.

T = TypeVar("T")
COCO = ("Put testall_caps.txt and testall_ids.txt (the 25,000 captions of COCO's 5,000 test images "
        "in Karpathy's order, and their images) and dev_caps.txt, dev_ids.txt into coco5k/.")


def attempt(what: str, absent: dict[str, str], make: Callable[[], T]) -> T | None:
    """What `make` gives; None where it cannot be had here, the reason then being in `absent`."""
    try:
        return make()
    except ValueError as error:  # DataError and WeightsError too
        absent[what] = str(error)
        return None


def caption_split(dataset: RetrievalDataset, label_vectors: Sequence[str], absent: dict[str, str],
                  name: str = "test", folder: Path | None = None) -> EncodedSplit:
    """A split with its captions alone: label vectors, and no features of its images.

    Args:    label_vectors: names of LABEL_ENCODERS; absent: takes those that cannot be had, with
             the reason; name: of the split; folder: of caches, None = `<home>/features`.
    """
    split, folder = dataset.splits[name], home() / "features" if folder is None else folder
    encoded = {kind: attempt(f"{kind} of {dataset.name}", absent, partial(
        encode_label_vectors, dataset, (), (kind,), folder)) for kind in label_vectors}
    return EncodedSplit(
        name, split.image_of_text, np.zeros((len(split.image_ids), 1, 1, 0), np.float32),
        relevance=exact_relevance(dataset, name) if dataset.relevance else None,
        label_vectors={kind: splits[name][kind] for kind, splits in encoded.items() if splits},
        judgements=judged_pairs(dataset, split))


@dataclass(frozen=True, eq=False)
class CocoCaptions:
    """The captions of COCO's 5,000 test images, their numbers in COCO, and three ground truths."""

    split: EncodedSplit
    texts: tuple[str, ...]
    image_ids: np.ndarray  # (I,) int64
    text_ids: np.ndarray  # (T,) int64
    truth: TruthSets


def read_coco(root: Path | str | None, absent: dict[str, str],
              label_vectors: Sequence[str] = ("minilm", "cider", "texts"),
              truth: TruthSets | None = None, folder: Path | None = None) -> CocoCaptions:
    """COCO's test captions from `coco5k/` with label vectors; idf is of its dev captions.

    Args:    absent: takes those of `label_vectors` that cannot be had; truth: None = of the
             package eccv-caption; folder: of caches.
    Raises:  DataError where captions are missing, or are not those the ground truth speaks of;
             ValueError without the package.
    """
    root = find_root(root, "coco5k", marks=("testall_caps.txt",), obtain=COCO)
    truth = read_eccv() if truth is None else truth
    test = read_captions(root, "test")
    images = np.array([int(name) for name in test.image_ids])
    owners = [truth.coco.t2i[text][0] for text in truth.order.tolist()]
    if owners != images[test.image_of_text].tolist():
        raise DataError(f"{root}: the captions are not those of eccv-caption in its order "
                        f"({len(test.texts)} captions, {len(owners)} expected). {COCO}")
    encode = {"minilm": lambda: caption_vectors(test.texts, TEXT_ENCODERS["minilm"](),
                                                "coco5k-test", folder=folder),
              "cider": lambda: ngram_vectors(root, test.texts),
              "texts": lambda: np.array(test.texts, object)}
    encoded = {name: attempt(f"{name} of coco5k", absent, encode[name]) for name in label_vectors}
    split = EncodedSplit(
        "test", test.image_of_text, np.zeros((len(images), 1, 1, 0), np.float32),
        label_vectors={name: one for name, one in encoded.items() if one is not None})
    return CocoCaptions(split, test.texts, images, np.asarray(truth.order, np.int64), truth)


def ngram_vectors(folder: Path, texts: Sequence[str]) -> NgramVectors:
    """n-gram vectors of texts, their rarity counted in the validation captions of the folder."""
    dev = read_captions(folder, "dev")
    return Ngrams().fit(dev.texts, dev.image_of_text).encode(texts)


PEOPLE = {"expert": ("Flickr8k, experts", "Kendall τ-c"),
          "crowdflower": ("Flickr8k, crowd", "Kendall τ-b")}


@dataclass(frozen=True, eq=False)
class Judge:
    """N rated pairs of a first and a second thing: an image and a text, unless the name says else.

    first, second (N,) int64: indices into a split; ratings (N,): mean over raters; own (N,) bool:
    both belong to the same image; groups (N,): image of each pair, drawn together in a bootstrap;
    score: a label source -> (N,); correlate: (scores (N,), which pairs) -> correlation of these.
    """

    name: str
    statistic: str
    first: np.ndarray
    second: np.ndarray
    ratings: np.ndarray
    own: np.ndarray
    groups: np.ndarray
    score: Callable[[object], np.ndarray]
    correlate: Callable[[np.ndarray, np.ndarray], float]

    def __len__(self) -> int:
        return len(self.ratings)


def people(split: EncodedSplit) -> list[Judge]:
    """Everybody who judged pairs of a split: the experts and the crowd of Flickr8k."""
    return [Judge(*PEOPLE.get(name, (name, f"Kendall τ-{one.judgements.tau}")), one.images,
                  one.texts, np.nanmean(one.judgements.ratings, axis=1), one.judgements.own,
                  one.images, partial(pair_relevance, split=split, first=one.images,
                                      second=one.texts), partial(kendall_tau, one.judgements))
            for name, one in split.judgements.items()]


def exact_judges(split: EncodedSplit, pairs: int = 20_000, seed: int = 0) -> list[Judge]:
    """Exact relevance of all matches and of some other pairs, by order and by value."""
    random = np.random.default_rng(seed)
    images, texts = random.integers(split.n_images, size=pairs), random.integers(split.n_texts,
                                                                                 size=pairs)
    other = split.image_of_text[texts] != images
    images = np.r_[split.image_of_text, images[other]]
    texts = np.r_[np.arange(split.n_texts), texts[other]]
    exact, own = split.relevance[images, texts].astype(float), split.image_of_text[texts] == images
    judged = Judgements("exact", tuple(map(str, images)), tuple(map(str, texts)), exact[:, None],
                        own, "b")
    rated = Crisscrossed("sits", "test", texts, images, exact, own)
    score = partial(pair_relevance, split=split, first=images, second=texts)
    return [Judge("exact relevance, order", "Kendall τ-b", images, texts, exact, own, images,
                  score, partial(kendall_tau, judged)),
            Judge("exact relevance, value", "Pearson", images, texts, exact, own, images, score,
                  partial(cxc_statistic, rated, "pearson"))]


def raters(coco: CocoCaptions, root: Path | str | None, kind: str = "sits",
           statistic: str = "pearson") -> Judge:
    """The raters of CxC: of images with texts ("sits"), of texts ("sts"), or of images ("sis").

    Raises:  DataError where the ratings are missing, or of other captions than COCO's.
    """
    rated = read_cxc(root, kind)
    image = {int(number): place for place, number in enumerate(coco.image_ids)}
    text = {int(number): place for place, number in enumerate(coco.text_ids)}
    places = {"sits": (text, image), "sts": (text, text), "sis": (image, image)}[kind]
    unknown = [n for ids, place in zip((rated.first, rated.second), places, strict=True)
               for n in ids.tolist() if n not in place]
    if unknown:
        raise DataError(f"cxc: {len(unknown)} ids, {unknown[0]} the first, are none of the test "
                        "captions or images of coco5k; read both of the same release")
    first, second = (np.array([place[n] for n in ids.tolist()]) for ids, place in
                     zip((rated.first, rated.second), places, strict=True))
    owner = coco.split.image_of_text
    name, groups, one, other, score = {
        "sits": ("CxC, images and texts", second, second, first, pair_relevance),
        "sts": ("CxC, two texts", owner[first], first, second, text_relevance),
        "sis": ("CxC, two images", first, first, second, image_relevance)}[kind]
    return Judge(name, statistic.capitalize(), one, other, rated.ratings, rated.own, groups,
                 partial(score, split=coco.split, first=one, second=other),
                 partial(cxc_statistic, rated, statistic))


def kendall_tau(judged: Judgements, scores: np.ndarray, pairs: np.ndarray) -> float:
    """Kendall's tau-b or tau-c, whichever these judgements are compared by, over some pairs."""
    (value,) = human_correlation(scores[pairs], judged.take(pairs), own=True).values()
    return value


def cxc_statistic(rated: Crisscrossed, statistic: str, scores: np.ndarray,
                  pairs: np.ndarray) -> float:
    """Pearson's or Spearman's correlation of scores with CxC's ratings over some pairs."""
    part = replace(rated, first=rated.first[pairs], second=rated.second[pairs],
                   ratings=rated.ratings[pairs], own=rated.own[pairs])
    return cxc_correlation(scores[pairs], part)[statistic]
