"""Which captions may be wrong? Each picture is judged by models that were trained on others."""

import re
import unicodedata
from collections import Counter, defaultdict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, product
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn.functional import normalize

from itr_study.data.base import Split
from itr_study.data.vocabulary import tokenize
from itr_study.features.texts import EncodedData
from itr_study.models.cca import cca, pooled, sentences
from itr_study.progress import counting

FEWEST = 50  # pictures: fewer teach a model nothing about the others
FOLDS, SEEDS = 5, 3
REGULARISATIONS = (0.03, 0.3, 3.0, 30.0, 300.0)  # tried by `judge`
ALIKE = 0.9  # cosine of the features of two pictures, the mean taken off
SAMPLE = 1_000_000  # pairs of a fold that stand for all that do not belong together
MOST = 50  # pairs of pictures of one split, and captions that fit many, that are listed
EMPTY, TONGUE, WRONG, OVERLAP, NEAR, SHARED, MANY = REASONS = (  # surest first
    "without content", "other language or script", "fits another picture better", "picture in two "
    "splits", "nearly the same pictures", "caption of several pictures", "fits many pictures")
BLANK = frozenset("a an the of this image photo picture img untitled caption none null n".split())
FILE = re.compile(r"\S+\.(jpe?g|png|gif|webp|heic)\b|\b(img|dsc[nf]?|pxl)[ _-]?\d{2,}\b", re.I)
MARKUP = re.compile(r"&(#\d+|#x[\da-f]+|[a-z]+\d*);|</?[a-z][^<>]*>", re.I)
LANGUAGES = {name: frozenset(words.split()) for name, words in {  # words that tell them apart
    "English": "the of and with is are on at two his her",
    "German": "der das ein eine und mit auf ist im einem einen",
    "French": "le les des et dans sur une avec est du au",
    "Spanish": "el los las y con una por del su sobre"}.items()}
Score = Callable[[Tensor, Tensor], Tensor]  # images (I, P) and texts (T, Q) -> (I, T)
Fit = Callable[[Tensor, Tensor], Score]  # of pairs (N, P), (N, Q)


class Judged(NamedTuple):
    """What models that never saw a picture say of its captions, (T,) each."""

    own: np.ndarray  # score with its own picture, in deviations of pairs that do not belong
    chance: np.ndarray  # share of such pairs that score as high: uniform for wrong captions
    best: np.ndarray  # score with the other picture that it fits best
    other: np.ndarray  # that picture
    fits: np.ndarray  # estimated number of other pictures that it fits as usual captions fit theirs
    taken: int  # which of the fits that were tried

    @property
    def doubt(self) -> np.ndarray:
        """What captions are sorted by (T,)."""
        return self.best / 2 - self.own

    @property
    def wrong(self) -> int:
        """Estimate how many are wrong: twice those in the worse half of chance (Storey, 2002)."""
        return min(len(self.chance), 2 * int((self.chance > 0.5).sum()))


# What to look at: a picture, its caption and another picture by index, -1 for none.
Finding = namedtuple("Finding", "reason doubt image text other detail")


def fit_linear(images: Tensor, texts: Tensor, regularisation: float) -> Score:
    """Fit CCA to pairs (N, P), (N, Q), weighted by the correlations (Gong et al., IJCV 2014)."""
    model = cca(images, texts, regularisation=regularisation)
    weighted = [directions * model.correlations for directions in (model.image_map, model.text_map)]
    return lambda some, others: (model.project(some, model.image_mean, weighted[0])
                                 @ model.project(others, model.text_mean, weighted[1]).T)


def arrays(data: EncodedData) -> tuple[Tensor, Tensor]:
    """Take mean regions (I, P) and sentence vectors (T, Q) of all splits, each less the mean.

    Of I < P pictures P is I: turned onto the directions in which they vary, with equal cosines.
    The ridge of `cca` is then larger by P / I, since it is a share of the mean variance.
    """
    splits = data.splits.values()
    looks = torch.cat([pooled(split.image_batch(np.arange(split.n_images))) for split in splits])
    said = torch.cat([sentences(split.text_batch(np.arange(split.n_texts))) for split in splits])
    mean = looks.mean(dim=0)
    looks = looks - mean
    looks[looks.norm(dim=1) <= 1e-5 * mean.norm()] = 0  # pictures that are all equal: noise
    if len(looks) < looks.shape[1]:
        left, values, _ = torch.linalg.svd(looks, full_matrices=False)
        looks = left * values
    return looks, normalize(said - said.mean(dim=0), dim=1)


def check_audit(split: Split) -> None:
    """Raise ValueError for few pictures, and for captions that are all equal."""
    if len(split.image_ids) < FEWEST:
        raise ValueError(f"an audit needs {FEWEST} pictures or more, got {len(split.image_ids)}: "
                         "a picture is judged by models that learn from the others")
    if len({tuple(tokenize(text)) for text in split.texts}) == 1:
        raise ValueError(f"all captions say {split.texts[0][:60]!r}; give each picture its own")


def judge(looks: Tensor, said: Tensor, owner: np.ndarray, twins: np.ndarray, seeds: int = SEEDS,
          fits: Sequence[Fit] = tuple(partial(fit_linear, regularisation=each)
                                      for each in REGULARISATIONS)) -> Judged:
    """Judge pairs by models trained on the pictures of other folds, and by the other captions.

    Takes means over `seeds` ways to cut the pictures into folds, each group of twins (N, 2) in one;
    `owner` (T,) is the image of each text. Of several `fits` that is taken by whose scores alone
    pairs that belong together are, in the first folds, furthest above others. Source: ours.
    """
    images, texts = len(looks), len(owner)
    groups, group = together(twins, images)
    own, chance, fitting = np.zeros((3, texts))
    best, other = np.full(texts, -np.inf), np.zeros(texts, np.int64)
    folds = [np.random.default_rng(seed).permutation(groups)[group] % FOLDS
             for seed in range(seeds)]
    tried = len(fits) if len(fits) > 1 else 0
    with counting("auditing", FOLDS * (seeds + tried), "models") as show:
        def judged(fit: Fit, fold: np.ndarray, k: int, siblings: bool) -> tuple[np.ndarray, ...]:
            rows, columns = np.flatnonzero(fold == k), np.flatnonzero(fold[owner] == k)
            train = torch.from_numpy(np.flatnonzero(fold[owner] != k))
            mine = np.searchsorted(rows, owner[columns])
            pairs = compared(fit(looks[owner[train]], said[train]), looks[rows], said[columns],
                             mine, siblings)
            show(next(done), "")
            return rows, columns, pairs, pairs[mine, np.arange(len(columns))]

        done = count(1)
        taken = int(np.argmax([sum(judged(fit, folds[0], k, False)[-1].mean()
                                   for k in range(FOLDS)) for fit in fits])) if tried else 0
        for fold, k in product(folds, range(FOLDS)):
            rows, columns, pairs, mine = judged(fits[taken], fold, k, True)
            pairs[np.searchsorted(rows, owner[columns]), np.arange(len(columns))] = -np.inf
            null = np.sort(pairs[pairs > -np.inf][::-(-pairs.size // SAMPLE)])
            own[columns] += mine / seeds
            chance[columns] += (1 - np.searchsorted(null, mine) / len(null)) / seeds
            fitting[columns] += (pairs >= np.median(mine)).mean(axis=0) * images / seeds
            better = columns[pairs.max(axis=0) > best[columns]]
            other[better] = rows[pairs.argmax(axis=0)[np.isin(columns, better)]]
            best[columns] = np.maximum(best[columns], pairs.max(axis=0))
    return Judged(own, chance, best, other, fitting, taken)


def compared(score: Score | None, looks: Tensor, said: Tensor, owner: np.ndarray,
             siblings: bool = True) -> np.ndarray:
    """Compare pictures and captions (I, T) by a model, and captions with those of each picture.

    The caption itself is left out of those of its `owner` (T,). Without a model, captions alone;
    without siblings, the model alone.
    """
    place = owner, np.arange(len(owner))
    evidence = [] if score is None else [score(looks, said).numpy()]
    if siblings:
        total = torch.zeros(len(looks), said.shape[1]).index_add_(0, torch.from_numpy(owner), said)
        alike, alone = normalize(total, dim=1) @ said.T, total[owner] - said
        alike[place] = (normalize(alone, dim=1) * said).sum(dim=1)
        alike[:, alone.norm(dim=1) < 1e-4] = 0  # an only caption has nothing to say
        evidence.append(alike.numpy())
    return standard(evidence, place)


def together(twins: np.ndarray, images: int) -> tuple[int, np.ndarray]:
    """Group pictures that are nearly the same: the number of groups, and that of each (I,)."""
    links = coo_array((np.ones(len(twins)), twins.T.reshape(2, -1)), shape=(images, images))
    groups, group = connected_components(links, directed=False)
    if len(twins) and np.bincount(group).max() > images / (2 * FOLDS):
        return together(twins[:len(twins) // 2], images)  # else one fold would hold nearly all
    return groups, group


def standard(evidence: Sequence[np.ndarray], own: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Add matrices (I, T), less half their means, by linear discriminant of `own` and others."""
    total = np.zeros_like(evidence[0])
    others = np.ones(total.shape, bool)
    others[own] = False
    for one in evidence:
        one = one - (one.mean(axis=0) + one.mean(axis=1, keepdims=True)) / 2
        lift = one[own].mean() - one[others].mean()
        total += max(lift, 0.0) / max(one[others].var(), 1e-12) * one
    return (total - total[others].mean()) / max(total[others].std(), 1e-12)


def near_pictures(looks: Tensor, least: float = ALIKE) -> tuple[np.ndarray, np.ndarray]:
    """Find pairs (N, 2) of pictures by the cosine (N,) of their features (I, P), highest first."""
    nothing = (looks == 0).all(dim=1, keepdim=True)  # the mean itself, as are pictures all equal
    unit, pairs, alike = torch.cat((normalize(looks, dim=1), nothing), dim=1), [], []
    for start in range(0, len(unit), 1024):
        cosines = unit[start:start + 1024] @ unit.T
        rows, columns = (cosines.triu(start + 1) >= least).nonzero(as_tuple=True)
        pairs.append(torch.stack((rows + start, columns), dim=1))
        alike.append(cosines[rows, columns])
    order = torch.cat(alike).argsort(descending=True, stable=True)
    return torch.cat(pairs)[order].numpy(), torch.cat(alike)[order].numpy()


def content_problem(text: str) -> str:
    """Say why a caption says nothing of a picture, or is damaged; "" if it may be sound."""
    if BLANK.issuperset(tokenize(text)):
        return "says nothing"
    if found := FILE.search(text) or MARKUP.search(text):
        return f"has {found[0]!r}, which is of a file or a page"
    try:  # bytes of UTF-8 that were read as those of another code decode a second time
        mended = text if text.isascii() else text.encode("cp1252").decode()
    except UnicodeError:
        mended = text
    return f"is damaged, perhaps {mended!r}" if mended != text or "\ufffd" in text else ""


def most(names: Iterable[str]) -> str:
    """Return the most frequent name that is not empty; "" if there is none."""
    return next((name for name, _ in Counter(filter(None, names)).most_common(1)), "")


def script(text: str) -> str:
    """Name the script of most letters of a text, as Unicode does: LATIN, CYRILLIC, CJK; or ""."""
    return most(unicodedata.name(sign, " ").split()[0] for sign in text if sign.isalpha())


def language(text: str) -> str:
    """Guess the language by frequent words; "" unless there are two of one, and of no other."""
    found = [name for word in set(tokenize(text)) for name in LANGUAGES if word in LANGUAGES[name]]
    return found[0] if len(found) > 1 and len(set(found)) == 1 else ""


def findings(split: Split, splits: Sequence[str], judged: Judged, twins: np.ndarray,
             alike: np.ndarray) -> list[Finding]:
    """List what to look at; `splits` names that of each image (I,), twins are `near_pictures`."""
    owner, found = split.image_of_text.tolist(), list(by_words(split))
    named = {one.text for one in found if one.reason != SHARED}
    worst = np.argsort(-judged.doubt, kind="stable")[:max(20, judged.wrong)].tolist()
    found += [Finding(WRONG, judged.doubt[t], owner[t], t, int(judged.other[t]), f"score "
                      f"{judged.own[t]:.1f} with its picture, {judged.best[t]:.1f} with the other")
              for t in worst if t not in named and judged.best[t] > judged.own[t]]
    near = 0
    for (one, two), cosine in zip(twins.tolist(), alike.tolist(), strict=True):
        apart = splits[one] != splits[two]
        if apart or near < MOST:
            near += not apart
            found.append(Finding(OVERLAP if apart else NEAR, cosine, one, -1, two,
                                 f"cosine {cosine:.2f}, {splits[one]} and {splits[two]}"))
    named |= {one.text for one in found}
    many = [t for t in np.argsort(-judged.fits, kind="stable").tolist() if t not in named]
    found += [Finding(MANY, judged.fits[t], owner[t], t, -1, f"fits about {judged.fits[t]:.0f}")
              for t in many[:MOST] if judged.fits[t] >= 1]
    return sorted(found, key=lambda one: (REASONS.index(one.reason), -one.doubt))


def by_words(split: Split) -> Iterator[Finding]:
    """Find what the words of captions alone tell."""
    shared = defaultdict(dict)  # what is said -> picture -> its caption
    usual = {kind: most(map(kind, split.texts)) for kind in (script, language)}
    for t, (text, image) in enumerate(zip(split.texts, split.image_of_text.tolist(), strict=True)):
        shared[tuple(tokenize(text))][image] = t
        strange = [f"seems to be {kind(text).title()}, most are {name.title()}"
                   for kind, name in usual.items() if kind(text) not in ("", name)]
        if why := content_problem(text):
            yield Finding(EMPTY, 1.0, image, t, -1, why)
        elif strange:
            yield Finding(TONGUE, 1.0, image, t, -1, strange[0])
    for group in shared.values():
        if len(group) > 1:
            (one, t), (other, _) = [*group.items()][:2]
            yield Finding(SHARED, len(group), one, t, other, f"{len(group)} pictures have it")
