"""Which captions may be wrong? Each picture is judged by models that were trained on others."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
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
REGULARISATION, POWER = 1.0, 2.0
ALIKE = 0.9  # cosine of the features of two pictures, the mean taken off
SAMPLE = 1_000_000  # pairs of a fold that stand for all that do not belong together
MOST = 50  # findings of the other kinds, each
REASONS = ("without content", "other script", "other language", "fits another picture better",
           "picture in two splits", "nearly the same pictures", "caption of several pictures",
           "fits many pictures")
EMPTY = frozenset("a an the of this is it image images photo photos photograph picture pictures "
                  "img untitled caption description none null nan n na no unknown test".split())
FILE = re.compile(r"\S+\.(jpe?g|png|gif|webp|bmp|tiff?|heic)\b|\b(img|dsc[nf]?|pxl|image|photo)"
                  r"[ _-]?\d{2,}\b", re.I)
MARKUP = re.compile(r"&(#\d+|#x[\da-f]+|[a-z]+\d*);|</?[a-z][^<>]*>", re.I)
# The most frequent words that tell a language from the others.
LANGUAGES = {
    "English": "the of and with is are on at two his her",
    "German": "der das ein eine und mit auf ist im einem einen",
    "French": "le les des et dans sur une avec est du au",
    "Spanish": "el los las y con una por del su sobre",
    "Italian": "il di che e gli nel della uno sulla mentre",
    "Dutch": "het een van op met zijn en aan naar bij"}


class Judged(NamedTuple):
    """What models that never saw a picture say of its captions; all but the last (T,)."""

    own: np.ndarray  # score with its own picture, in deviations of pairs that do not belong
    chance: np.ndarray  # share of such pairs that score as high: uniform for wrong captions
    best: np.ndarray  # score with the other picture that it fits best
    other: np.ndarray  # that picture
    fits: np.ndarray  # estimated number of other pictures that it fits as well as a usual caption
    single: int  # pictures with one caption, which cannot be compared with others of its picture

    @property
    def wrong(self) -> int:
        """How many captions are wrong, at most: twice those in the worse half of chance.

        Source: Storey, JRSS B 2002, with lambda = 1/2; right captions in that half make it larger.
        """
        return min(len(self.chance), 2 * int((self.chance > 0.5).sum()))


class Finding(NamedTuple):
    """One thing to look at: indices of the picture, the caption and the other picture, or None."""

    reason: str
    doubt: float  # higher comes first within a reason
    image: int
    text: int | None
    other: int | None
    detail: str


Fit = Callable[[Tensor, Tensor], Callable[[Tensor, Tensor], Tensor]]


def fit_linear(images: Tensor, texts: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Fit regularised CCA to pairs (N, P), (N, Q); directions count by their correlation.

    Returns: a function that scores images (I, P) with texts (T, Q): (I, T).
    Source: the weights are those of Gong et al., IJCV 2014 (there the fourth power in the cosine).
    """
    model = cca(images, texts, regularisation=REGULARISATION)
    weight = model.correlations ** POWER
    return lambda some, others: (
        model.project(some, model.image_mean, model.image_map * weight)
        @ model.project(others, model.text_mean, model.text_map * weight).T)


def arrays(data: EncodedData) -> tuple[Tensor, Tensor]:
    """Take mean regions (I, P), and sentence vectors (T, Q) of length 1, of all splits in order.

    Of both the mean is taken off.
    """
    splits = data.splits.values()
    looks = torch.cat([pooled(split.image_batch(np.arange(split.n_images))) for split in splits])
    said = torch.cat([sentences(split.text_batch(np.arange(split.n_texts))) for split in splits])
    return looks - looks.mean(dim=0), normalize(said - said.mean(dim=0), dim=1)


def check_audit(split: Split) -> None:
    """Raise ValueError for data that no audit can judge: few pictures, captions that are equal."""
    if len(split.image_ids) < FEWEST:
        raise ValueError(f"an audit needs {FEWEST} pictures or more, got {len(split.image_ids)}: "
                         "a picture is judged by models that learn from the others")
    if len({tuple(tokenize(text)) for text in split.texts}) == 1:
        raise ValueError(f"all {len(split.texts):,} captions say {split.texts[0][:60]!r}, so none "
                         "fits its picture better than another; give each picture its own")


def judge(looks: Tensor, said: Tensor, owner: np.ndarray, twins: np.ndarray, folds: int = FOLDS,
          seeds: int = SEEDS, fit: Fit = fit_linear) -> Judged:
    """Judge every pair by cross-fitting: models of the other folds, and the siblings of a caption.

    A pair has two pieces of evidence: the score of a model that was trained without its picture
    and the cosine of the caption with the mean of the other captions of the picture. Each counts
    by how far it lifts a picture's own captions above those of others, over the variance of these
    (as in linear discriminant analysis). Half of the means of picture and caption is taken off.

    Args:
        looks: (I, P) as of `arrays`.
        said: (T, Q) as of `arrays`.
        owner: (T,) the image of each text.
        twins: (P, 2) pictures that are nearly the same: they are in one fold.
        folds: in which the pictures are cut, by chance.
        seeds: how often they are cut; the mean is taken.
        fit: trains on pairs and returns what scores others.
    """
    images, texts = len(looks), len(owner)
    links = coo_array((np.ones(len(twins)), twins.T.reshape(2, -1)), shape=(images, images))
    groups, group = connected_components(links, directed=False)
    own, chance, fits = np.zeros((3, texts))
    best, other = np.full(texts, -np.inf), np.zeros(texts, np.int64)
    total = torch.zeros(images, said.shape[1]).index_add_(0, torch.from_numpy(owner), said)
    with counting("auditing", folds * seeds, "models") as show:
        for seed in range(seeds):
            fold = np.random.default_rng(seed).permutation(groups)[group] % folds
            for k in range(folds):
                rows, columns = np.flatnonzero(fold == k), np.flatnonzero(fold[owner] == k)
                if not len(rows):
                    continue
                train = torch.from_numpy(np.flatnonzero(fold[owner] != k))
                place = np.searchsorted(rows, owner[columns]), np.arange(len(columns))
                siblings = normalize(total[rows], dim=1) @ said[columns].T
                alone = total[owner[columns]] - said[columns]
                siblings[place] = (normalize(alone, dim=1) * said[columns]).sum(dim=1)
                siblings[:, alone.norm(dim=1) < 1e-4] = 0  # an only caption has nothing to say
                model = fit(looks[owner[train]], said[train])(looks[rows], said[columns])
                pairs = standard([model.numpy(), siblings.numpy()], place)
                mine = pairs[place]
                pairs[place] = -np.inf
                null = np.sort(pairs[:, ::-(-pairs.size // SAMPLE)].ravel())[len(columns):]
                own[columns] += mine / seeds
                chance[columns] += (1 - np.searchsorted(null, mine) / max(len(null), 1)) / seeds
                fits[columns] += (pairs >= np.median(mine)).mean(axis=0) * images / seeds
                found = pairs.argmax(axis=0), np.arange(len(columns))
                better = pairs[found] > best[columns]
                best[columns[better]] = pairs[found][better]
                other[columns[better]] = rows[found[0][better]]
                show(seed * folds + k + 1, "")
    return Judged(own, chance, best, other, fits, int((np.bincount(owner) == 1).sum()))


def standard(evidence: Sequence[np.ndarray], own: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Add matrices (I, T) of evidence, and express the sum in deviations of pairs not of `own`."""
    total = np.zeros_like(evidence[0])
    mask = np.ones(total.shape, bool)
    mask[own] = False
    for one in evidence:
        one = one - (one.mean(axis=0) + one.mean(axis=1, keepdims=True)) / 2
        null = one[mask]
        lift = one[own].mean() - null.mean()
        total += max(lift, 0.0) / max(null.var(), 1e-12) * (one - null.mean())
    null = total[mask]
    return (total - null.mean()) / max(null.std(), 1e-12)


def near_pictures(looks: Tensor, least: float = ALIKE) -> tuple[np.ndarray, np.ndarray]:
    """Find pairs of pictures whose features (I, P) have a cosine of at least `least`.

    Returns: pairs (P, 2), the lower index first, and their cosines (P,); most alike first.
    """
    unit, pairs, alike = normalize(looks, dim=1), [], []
    for start in range(0, len(unit), 1024):
        cosines = unit[start:start + 1024] @ unit.T
        rows, columns = (cosines >= least).nonzero(as_tuple=True)
        above = columns > rows + start
        pairs.append(torch.stack((rows + start, columns), dim=1)[above])
        alike.append(cosines[rows, columns][above])
    cosines = torch.cat(alike)
    order = cosines.argsort(descending=True, stable=True)
    return torch.cat(pairs)[order].numpy(), cosines[order].numpy()


def content_problem(text: str) -> str:
    """Say why a caption says nothing of a picture, or is damaged; "" if it may be sound.

    Example:
        >>> [content_problem(t) for t in ("a photo", "IMG_2041.jpg", "a dog &amp; a cat", "A dog")]
        ['says nothing', 'has the name of a file', 'has markup (&amp;)', '']
    """
    if EMPTY.issuperset(tokenize(text)):
        return "says nothing"
    if FILE.search(text):
        return "has the name of a file"
    if found := MARKUP.search(text):
        return f"has markup ({found[0]})"
    try:  # bytes of UTF-8 that were read as those of another code decode a second time
        mended = text if text.isascii() else text.encode("cp1252").decode()
    except UnicodeError:
        mended = text
    return f"is damaged, perhaps {mended!r}" if mended != text or "\ufffd" in text else ""


def script(text: str) -> str:
    """Name the script of most letters of a text, as Unicode does: LATIN, CYRILLIC, CJK; or ""."""
    names = Counter(unicodedata.name(letter, " ").split()[0] for letter in text if letter.isalpha())
    return names.most_common(1)[0][0] if names else ""


def language(text: str) -> str:
    """Guess the language from frequent words; "" unless one alone has two or more of them."""
    words = Counter({name: len(set(known.split()) & set(tokenize(text)))
                     for name, known in LANGUAGES.items()})
    (first, most), (_, second) = words.most_common(2)
    return first if most >= 2 and second == 0 else ""


def findings(split: Split, splits: Sequence[str], judged: Judged, twins: np.ndarray,
             alike: np.ndarray) -> list[Finding]:
    """List what to look at, the surest reason first.

    Args:
        split: all splits in one.
        splits: (I,) the name of the split of each image.
        judged: by `judge`.
        twins: by `near_pictures`.
        alike: the same.
    """
    found = [*text_findings(split), *twin_findings(splits, twins, alike)]
    owner = split.image_of_text.tolist()
    named = {one.text for one in found}
    worst = np.argsort(-judged.chance, kind="stable")[:max(20, judged.wrong)]
    worst = sorted(worst.tolist(), key=lambda t: judged.own[t])
    found += [Finding(REASONS[3], -judged.own[t], owner[t], t, int(judged.other[t]),
                      f"score {judged.own[t]:.1f} with its picture, {judged.best[t]:.1f} with the "
                      "other; pairs that do not belong together have 0 on average")
              for t in worst if t not in named and judged.best[t] > judged.own[t]]
    named |= {one.text for one in found}
    many = [t for t in np.argsort(-judged.fits, kind="stable").tolist() if t not in named]
    found += [Finding(REASONS[7], judged.fits[t], owner[t], t, None, "fits some "
                      f"{judged.fits[t]:.0f} other pictures as well as usual captions fit theirs")
              for t in many[:MOST] if judged.fits[t] >= 1]
    return sorted(found, key=lambda one: (REASONS.index(one.reason), -one.doubt))


def text_findings(split: Split) -> Iterator[Finding]:
    """Find what the words alone tell."""
    owner, shared = split.image_of_text.tolist(), defaultdict(list)
    scripts, languages = [script(t) for t in split.texts], [language(t) for t in split.texts]
    usual = [Counter(filter(None, names)).most_common(1)[0][0] if any(names) else ""
             for names in (scripts, languages)]
    for t, text in enumerate(split.texts):
        shared[" ".join(tokenize(text))].append(t)
        if why := content_problem(text):
            yield Finding(REASONS[0], 1.0, owner[t], t, None, why)
        elif scripts[t] not in ("", usual[0]):
            yield Finding(REASONS[1], 1.0, owner[t], t, None,
                          f"written in {scripts[t].title()}, most in {usual[0].title()}")
        elif languages[t] not in ("", usual[1]):
            yield Finding(REASONS[2], 1.0, owner[t], t, None,
                          f"seems to be {languages[t]}, most are {usual[1]}")
    for group in sorted(shared.values(), key=len, reverse=True):
        pictures = list(dict.fromkeys(owner[t] for t in group))
        if len(pictures) > 1:
            yield Finding(REASONS[6], len(pictures), pictures[0], group[0], pictures[1],
                          f"{len(pictures)} pictures have it")


def twin_findings(splits: Sequence[str], twins: np.ndarray, alike: np.ndarray
                  ) -> Iterator[Finding]:
    """Find pictures that are nearly the same, those in two splits apart."""
    for (one, two), cosine in zip(twins.tolist(), alike.tolist(), strict=True):
        apart = splits[one] != splits[two]
        where = f", in {splits[one]} and in {splits[two]}" * apart
        yield Finding(REASONS[4 if apart else 5], cosine, one, None, two,
                      f"cosine {cosine:.2f}{where}")
