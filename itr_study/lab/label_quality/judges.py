"""Judges of label sources: people of Flickr8k and CxC, or the exact relevance of generated data.

A judge holds rated pairs, and knows how a label source scores them and how scores are compared with
ratings. What is missing on a machine is recorded with its reason, never passed over.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import pandas as pd

from itr_study.data.base import DataError, Judgements, RetrievalDataset, find_root
from itr_study.data.batches import EncodedSplit
from itr_study.data.cxc import Crisscrossed, read_cxc
from itr_study.data.precomputed import read_captions
from itr_study.encoders import TEXT_ENCODERS
from itr_study.encoders.ngrams import Ngrams, NgramVectors
from itr_study.features.cache import CacheKey, cached
from itr_study.features.dataset import exact_relevance, judged_pairs
from itr_study.features.texts import caption_vectors, encode_label_vectors
from itr_study.files.atomic import canonical_json
from itr_study.files.paths import home
from itr_study.metrics.eccv import TruthSets, read_eccv
from itr_study.metrics.human import cxc_correlation, human_correlation
from itr_study.relevance.meteor import Meteor, Spice

T = TypeVar("T")
TOOLS = (Meteor, Spice)  # minutes for many pairs: their scores are kept
PAIRS = 1000  # kept at a time
IMAGES = 256  # of a block, for sources that know no single pairs
COCO = ("Put testall_caps.txt and testall_ids.txt (the 25,000 captions of COCO's 5,000 test images "
        "in Karpathy's order, and their images) and dev_caps.txt, dev_ids.txt into coco5k/.")
PEOPLE = {"expert": ("Flickr8k, experts", "Kendall τ-c"),
          "crowdflower": ("Flickr8k, crowd", "Kendall τ-b")}


def attempt(what: str, absent: dict[str, str], make: Callable[[], T]) -> T | None:
    """Return what `make` gives, or None with the reason in `absent` if it cannot be had here."""
    try:
        return make()
    except ValueError as error:  # DataError and WeightsError too
        absent[what] = str(error)
        return None


def caption_split(dataset: RetrievalDataset, label_vectors: Sequence[str], absent: dict[str, str],
                  folder: Path | None = None) -> EncodedSplit:
    """Encode the captions of split test alone: label vectors, and no features of its images.

    `absent` takes the names of LABEL_ENCODERS that cannot be had, with the reason; the folder of
    caches is `<home>/features` by default.
    """
    split, folder = dataset.splits["test"], folder or home() / "features"
    encoded = {kind: attempt(f"{kind} of {dataset.name}", absent, partial(
        encode_label_vectors, dataset, (), (kind,), folder)) for kind in label_vectors}
    return EncodedSplit(
        "test", split.image_of_text, np.zeros((len(split.image_ids), 1, 1, 0), np.float32),
        relevance=exact_relevance(dataset, "test") if dataset.relevance else None,
        label_vectors={kind: splits["test"][kind] for kind, splits in encoded.items() if splits},
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
              truth: TruthSets | None = None) -> CocoCaptions:
    """Read COCO's test captions from `coco5k/` with label vectors; idf is of its dev captions.

    `absent` takes the label vectors that cannot be had; truth: None = of the package eccv-caption.

    Raises: DataError: captions are missing, or are not those of the ground truth; ValueError: the
        package is missing.
    """
    root = find_root(root, "coco5k", marks=("testall_caps.txt",), obtain=COCO)
    truth = read_eccv() if truth is None else truth
    test = read_captions(root, "test")
    images = np.array([int(name) for name in test.image_ids])
    owners = [truth.coco.t2i[text][0] for text in truth.order.tolist()]
    if owners != images[test.image_of_text].tolist():
        raise DataError(f"{root}: the captions are not those of eccv-caption in its order "
                        f"({len(test.texts)} captions, {len(owners)} expected). {COCO}")

    def ngrams() -> NgramVectors:
        dev = read_captions(root, "dev")
        return Ngrams().fit(dev.texts, dev.image_of_text).encode(test.texts)

    encode = {"minilm": lambda: caption_vectors(test.texts, TEXT_ENCODERS["minilm"](),
                                                "coco5k-test"),
              "cider": ngrams, "texts": lambda: np.array(test.texts, object)}
    encoded = {name: attempt(f"{name} of coco5k", absent, encode[name]) for name in label_vectors}
    split = EncodedSplit(
        "test", test.image_of_text, np.zeros((len(images), 1, 1, 0), np.float32),
        label_vectors={name: one for name, one in encoded.items() if one is not None})
    return CocoCaptions(split, test.texts, images, np.asarray(truth.order, np.int64), truth)


@runtime_checkable
class PairSource(Protocol):
    """A label source that compares texts, and so scores pairs one by one."""

    def pairs(self, split: EncodedSplit, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Grade texts for images, pair by pair: (N,)."""


def pair_relevance(source: object, split: EncodedSplit, first: np.ndarray, second: np.ndarray
                   ) -> np.ndarray:
    """Grade text second[n] for image first[n]: (N,) float32; 1 for an image's own."""
    if isinstance(source, TOOLS):
        return tool_relevance(source, split, first, second)
    if isinstance(source, PairSource):
        return source.pairs(split, first, second)
    values = np.empty(len(first), np.float32)
    for start in range(0, split.n_images, IMAGES):
        rows = np.flatnonzero((first >= start) & (first < start + IMAGES))
        if len(rows):
            block = source.block(split, slice(start, start + IMAGES))
            values[rows] = block[first[rows] - start, second[rows]]
    return values


def tool_relevance(source: Meteor | Spice, split: EncodedSplit, first: np.ndarray,
                   second: np.ndarray) -> np.ndarray:
    """Grade as `pair_relevance` by a slow tool: scores are cached, matches never sent to it."""
    others = np.flatnonzero(split.image_of_text[second] != first)
    values = np.ones(len(first), np.float32)
    if not len(others):
        return values
    content = [x.tolist() for x in (source.captions(split).vectors, split.image_of_text,
                                    first[others], second[others])]
    key = CacheKey("pairs", hashlib.sha256(canonical_json(content).encode()).hexdigest(),
                   source.name, source.version, {"over": source.pooling})  # as old caches say it
    values[others] = cached(
        key, len(others), lambda a, b: source.pairs(split, first[others[a:b]],
                                                    second[others[a:b]]),
        home() / "features", dtype="float32", block=PAIRS)
    return values


def text_relevance(source: object, split: EncodedSplit, first: np.ndarray, second: np.ndarray
                   ) -> np.ndarray:
    """Compare texts first[n] and second[n]: (N,) float32."""
    vectors = comparing_texts(source).captions(split).vectors
    return source.alike_pairs(vectors[first], vectors[second])


def image_relevance(source: object, split: EncodedSplit, first: np.ndarray, second: np.ndarray
                    ) -> np.ndarray:
    """Average the relevance of the texts of image second[n] to image first[n]: (N,)."""
    texts, starts, counts = comparing_texts(source).captions(split).of(second)
    values = pair_relevance(source, split, np.repeat(first, counts), texts)
    return np.add.reduceat(values, starts) / counts


def comparing_texts(source: object) -> object:
    """Return the source; raise ValueError unless it compares texts, and does so fast."""
    if isinstance(source, TOOLS) or not isinstance(source, PairSource):
        raise ValueError(f'labels "{source.name}" are not taken for two texts or two images: they '
                         "compare no texts, or take hours to")
    return source


@dataclass(frozen=True, eq=False)
class Judge:
    """N rated pairs of a first and a second thing: an image and a text, unless the name differs."""

    name: str
    statistic: str
    first: np.ndarray  # (N,) int64, indices into a split, as second
    second: np.ndarray
    ratings: np.ndarray  # (N,) mean over raters
    own: np.ndarray  # (N,) bool, both belong to the same image
    groups: np.ndarray  # (N,) image of each pair, drawn together in a bootstrap
    score: Callable[[object], np.ndarray]  # a label source -> (N,)
    correlate: Callable[[np.ndarray, np.ndarray], float]  # scores (N,), which pairs -> of these

    def __len__(self) -> int:
        return len(self.ratings)


def people(split: EncodedSplit) -> list[Judge]:
    """List the judges of pairs of a split: the experts and the crowd of Flickr8k."""
    return [Judge(*PEOPLE.get(name, (name, f"Kendall τ-{one.judgements.tau}")), one.images,
                  one.texts, np.nanmean(one.judgements.ratings, axis=1), one.judgements.own,
                  one.images, partial(pair_relevance, split=split, first=one.images,
                                      second=one.texts), partial(kendall_tau, one.judgements))
            for name, one in split.judgements.items()]


def exact_judges(split: EncodedSplit, pairs: int = 20_000, seed: int = 0) -> list[Judge]:
    """Judge by exact relevance of all matches and of some other pairs, by order and by value."""
    random = np.random.default_rng(seed)
    images, texts = (random.integers(n, size=pairs) for n in (split.n_images, split.n_texts))
    other = split.image_of_text[texts] != images
    images = np.r_[split.image_of_text, images[other]]
    texts = np.r_[np.arange(split.n_texts), texts[other]]
    exact, own = split.relevance[images, texts].astype(float), split.image_of_text[texts] == images
    judged = Judgements("exact", tuple(map(str, images)), tuple(map(str, texts)), exact[:, None],
                        own, "b")
    rated = Crisscrossed("sits", "test", texts, images, exact, own)
    score = partial(pair_relevance, split=split, first=images, second=texts)
    return [Judge(f"exact relevance, {name}", statistic, images, texts, exact, own, images, score,
                  correlate) for name, statistic, correlate in (
                      ("order", "Kendall τ-b", partial(kendall_tau, judged)),
                      ("value", "Pearson", partial(cxc_statistic, rated, "pearson")))]


def raters(coco: CocoCaptions, root: Path | str | None, kind: str = "sits",
           statistic: str = "pearson") -> Judge:
    """Read the raters of CxC: of images with texts ("sits"), texts ("sts") or images ("sis").

    Raises: DataError: the ratings are missing, or of other captions than COCO's.
    """
    rated = read_cxc(root, kind)
    images, texts = pd.Index(coco.image_ids), pd.Index(coco.text_ids)
    of_first, of_second = {"sits": (texts, images), "sts": (texts, texts),
                           "sis": (images, images)}[kind]
    first, second = of_first.get_indexer(rated.first), of_second.get_indexer(rated.second)
    unknown = [*rated.first[first < 0], *rated.second[second < 0]]
    if unknown:
        raise DataError(f"cxc: {len(unknown)} ids, {unknown[0]} the first, are none of the test "
                        "captions or images of coco5k; read both of the same release")
    owner = coco.split.image_of_text
    name, groups, one, other, score = {
        "sits": ("CxC, images and texts", second, second, first, pair_relevance),
        "sts": ("CxC, two texts", owner[first], first, second, text_relevance),
        "sis": ("CxC, two images", first, first, second, image_relevance)}[kind]
    return Judge(name, statistic.capitalize(), one, other, rated.ratings, rated.own, groups,
                 partial(score, split=coco.split, first=one, second=other),
                 partial(cxc_statistic, rated, statistic))


def kendall_tau(judged: Judgements, scores: np.ndarray, pairs: np.ndarray) -> float:
    """Compute the Kendall's tau, b or c, of these judgements over some pairs."""
    (value,) = human_correlation(scores[pairs], judged.take(pairs), own=True).values()
    return value


def cxc_statistic(rated: Crisscrossed, statistic: str, scores: np.ndarray,
                  pairs: np.ndarray) -> float:
    """Correlate scores with CxC's ratings over some pairs, by Pearson or Spearman."""
    part = replace(rated, first=rated.first[pairs], second=rated.second[pairs],
                   ratings=rated.ratings[pairs], own=rated.own[pairs])
    return cxc_correlation(scores[pairs], part)[statistic]
