"""Fisher vectors of word vectors: the text features of the topk paper, as far as they can be had.

Source:  Perronnin, Sanchez & Mensink, Improving the Fisher kernel, ECCV 2010, Eqs. 3-7; Klein et
         al., CVPR 2015, for texts; topk paper, Sec. IV-A-3.
Differs: the paper takes 300-d word2vec, rotates it by ICA, fits a hybrid Gaussian-Laplacian mixture
         (HGLMM) of 30 centres, has 18000 numbers a text and keeps 6000 by PCA. Here: 50-d GloVe,
         30 centres, 3000 numbers a text, 1000 by PCA. "fisher" has no ICA and a Gaussian mixture
         with diagonal covariances over all uses of words; "hglmm" has both, over different words.

Bits:    everything runs in one thread: BLAS adds in another order with two, and an axis of the PCA
         whose largest entries nearly tie then turns round (vectors of `scenes` had cosines of 0.85
         to those of one thread, their inner products differed by 5e-4). So one machine gives one
         result, whatever its threads. CPUs with other instructions still round otherwise: the
         mixture agrees within 5e-4, inner products of texts within 2e-3 (measured: 1.4e-4, 8e-4).
"""

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from itr_study.checks import check_number
from itr_study.data.vocabulary import tokenize
from itr_study.encoders.glove import GloveEncoder, known_vectors

SEED = 0
SAMPLE = 50_000  # words the mixture is fitted on
BLOCK = 4096  # texts at a time
MOST = 1000  # steps of ICA, of EM
FLOOR = 0.01  # least scale of a number that ICA has scaled to variance 1
UNSETTLED = (f"hglmm: {{}} has not settled after {MOST} steps; give more texts, or take "
             "sentences='fisher'")


def fit_mixture(texts: list[str], components: int) -> dict[str, np.ndarray]:
    """Fit a diagonal Gaussian mixture on the known words of texts, every use, or on a sample."""
    from sklearn.mixture import GaussianMixture

    tokens = [word for text in texts for word in tokenize(text)]
    known = known_vectors(set(tokens))
    used = [word for word in tokens if word in known]
    if len(used) < components:
        raise ValueError(f"fisher needs at least {components} known words to fit on, found "
                         f"{len(used)}; give more texts or fewer components")
    if len(used) > SAMPLE:
        chosen = np.random.default_rng(SEED).choice(len(used), SAMPLE, replace=False)
        used = [used[i] for i in chosen]
    mixture = GaussianMixture(components, covariance_type="diag", random_state=SEED, reg_covar=1e-4)
    with threadpool_limits(1):  # holds for what is loaded by now, so it stands after the import
        mixture.fit(np.stack([known[word] for word in used]))
    return {"weights": mixture.weights_, "means": mixture.means_, "variances": mixture.covariances_}


def fisher_vectors(texts: list[str], parts_of: Callable[..., np.ndarray],
                   **mixture: np.ndarray) -> np.ndarray:
    """Make improved Fisher vectors of texts, before PCA.

    The mean over the words of a text of `parts_of` (`word_parts` or `hybrid_parts`), then
    sign(z) sqrt(|z|) of each number, then length 1: (T, 2 * K * D) float32; u, then v.
    """
    tokens = [tokenize(text) for text in texts]
    known = known_vectors(sorted({word for text in tokens for word in text}))
    if not known:
        return np.zeros((len(texts), 2 * mixture["means"].size), np.float32)
    row_of = {word: row for row, word in enumerate(known)}
    parts = parts_of(np.stack(list(known.values())), **mixture)  # (V, 2KD)
    vectors = word_shares(tokens, row_of) @ parts
    vectors = np.sign(vectors) * np.sqrt(np.abs(vectors))
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(length, 1e-12)).astype(np.float32)


def word_parts(vectors: np.ndarray, weights: np.ndarray, means: np.ndarray,
               variances: np.ndarray) -> np.ndarray:
    """Compute what each word adds to (u, v) of a text, (V, 2KD); a text takes their mean.

    Of a word x with the posterior p_k(x), in a mixture with weights w (K,) and the rest (K, D):
        u_k = p_k(x) (x - mean_k) / sd_k / sqrt(w_k)
        v_k = p_k(x) ((x - mean_k)^2 / sd_k^2 - 1) / sqrt(2 w_k)
    """
    scaled = (vectors[:, None, :] - means) / np.sqrt(variances)  # (V, K, D)
    density = -0.5 * (scaled**2 + np.log(2 * np.pi * variances)).sum(axis=2) + np.log(weights)
    posterior = np.exp(density - np.logaddexp.reduce(density, axis=1, keepdims=True))  # (V, K)
    u = posterior[:, :, None] * scaled / np.sqrt(weights)[:, None]
    v = posterior[:, :, None] * (scaled**2 - 1) / np.sqrt(2 * weights)[:, None]
    return np.concatenate([u.reshape(len(vectors), -1), v.reshape(len(vectors), -1)], axis=1)


def fit_hybrid(texts: list[str], components: int) -> dict[str, np.ndarray]:
    """Turn the known words of texts by ICA and fit the hybrid mixture on them (`hybrid_mixture`).

    Each word counts once: of every use, most components would end as one frequent word.

    Raises: ValueError: there are too few words, or ICA or the mixture does not settle.
    """
    from sklearn.cluster import KMeans
    from sklearn.decomposition import FastICA

    known = known_vectors(sorted({word for text in texts for word in tokenize(text)}))
    least = max(components, 51)  # for ICA more than a vector of GloVe has numbers
    if len(known) < least:
        raise ValueError(f"hglmm needs at least {least} different known words, found {len(known)}; "
                         "give more texts, or take sentences='fisher'")
    words = np.stack(list(known.values())).astype(np.float64)
    ica = FastICA(whiten="unit-variance", random_state=SEED, max_iter=MOST, tol=1e-6)
    with threadpool_limits(1):
        turned = ica.fit_transform(words)
        if ica.n_iter_ == MOST:
            raise ValueError(UNSETTLED.format("ICA"))
        start = KMeans(components, n_init=1, random_state=SEED).fit(turned)
        return hybrid_mixture(turned, np.eye(components)[start.labels_]) | {
            "rotation": ica.components_.T, "shift": ica.mean_}


def hybrid_mixture(words: np.ndarray, posterior: np.ndarray) -> dict[str, np.ndarray]:
    """Fit a mixture of which each number of each component is Gaussian or Laplacian, by EM.

    Whichever is likelier: its scale is the standard deviation, or the mean distance to the median.

    Shape:   words (V, D), posterior (V, K) to start from -> weights (K,), means, scales and
             laplacian (bool), each (K, D).
    """
    order, before = words.argsort(axis=0, kind="stable"), -np.inf
    for _ in range(MOST):
        total = posterior.sum(axis=0)[:, None] + 1e-12  # a component may lose all words
        mean, median = posterior.T @ words / total, np.empty((len(total), words.shape[1]))
        for d, rows in enumerate(order.T):  # of two in the middle the lower, whatever the last bit
            below = (posterior[rows].cumsum(axis=0) < total[:, 0] * (0.5 - 1e-9)).sum(axis=0)
            median[:, d] = words[rows[np.minimum(below, len(rows) - 1)], d]
        variance, distance = (
            np.einsum("vk,vkd->kd", posterior, np.abs(words[:, None] - centre) ** power) / total
            for centre, power in ((mean, 2), (median, 1)))
        sd, scale = np.maximum(np.sqrt(variance), FLOOR), np.maximum(distance, FLOOR)
        laplacian = np.log(2 * scale) + distance / scale < (
            np.log(2 * np.pi * sd**2) + variance / sd**2) / 2
        mixture = {"weights": total[:, 0] / len(words), "laplacian": laplacian,
                   "means": np.where(laplacian, median, mean),
                   "scales": np.where(laplacian, scale, sd)}
        _, posterior, likelihood = scaled_words(words, **mixture)
        if likelihood.mean() - before < 1e-4:
            return mixture
        before = likelihood.mean()
    raise ValueError(UNSETTLED.format("the mixture"))


def scaled_words(words: np.ndarray, weights: np.ndarray, means: np.ndarray, scales: np.ndarray,
                 laplacian: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (x - mean) / scale (V, K, D), posteriors (V, K) and the log-likelihood (V,)."""
    scaled = (words[:, None] - means) / scales
    density = np.where(laplacian, -np.abs(scaled) - np.log(2 * scales),
                       -0.5 * (scaled**2 + np.log(2 * np.pi * scales**2)))
    joint = density.sum(axis=2) + np.log(weights)
    likelihood = np.logaddexp.reduce(joint, axis=1)
    return scaled, np.exp(joint - likelihood[:, None]), likelihood


def hybrid_parts(vectors: np.ndarray, rotation: np.ndarray, shift: np.ndarray,
                 **mixture: np.ndarray) -> np.ndarray:
    """Compute what each word adds to (u, v), as `word_parts`; of a Laplacian with the scale b_k.

    u_k = p_k(x) sign(x - median_k) / sqrt(w_k)
    v_k = p_k(x) (|x - median_k| / b_k - 1) / sqrt(w_k)
    """
    scaled, posterior, _ = scaled_words((vectors - shift) @ rotation, **mixture)
    scaled[np.abs(scaled) < 1e-3] = 0  # a word at a centre: else its sign is that of the last bit
    shares = (posterior / np.sqrt(mixture["weights"]))[:, :, None]
    u = shares * np.where(mixture["laplacian"], np.sign(scaled), scaled)
    v = shares * np.where(mixture["laplacian"], np.abs(scaled) - 1, (scaled**2 - 1) / np.sqrt(2))
    return np.concatenate([u.reshape(len(vectors), -1), v.reshape(len(vectors), -1)], axis=1)


def word_shares(tokens: list[list[str]], row_of: dict[str, int]) -> sparse.csr_array:
    """Count the share of each known word in a text, (T, V); a row without any is 0."""
    rows, columns, shares = [], [], []
    for row, text in enumerate(tokens):
        used = [row_of[word] for word in text if word in row_of]
        rows += [row] * len(used)
        columns += used
        shares += [1 / max(len(used), 1)] * len(used)
    return sparse.csr_array((shares, (rows, columns)), shape=(len(tokens), len(row_of)))


def fit_pca(features: Callable[[list[str]], np.ndarray], texts: list[str],
            dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Fit mean (D,) and leading axes (D, dims) of features(texts), largest entries positive."""
    total, square = 0.0, 0.0
    for start in range(0, len(texts), BLOCK):
        block = features(texts[start : start + BLOCK])
        total = total + block.sum(axis=0, dtype=np.float64)
        square = square + (block.T @ block).astype(np.float64)
    mean = total / len(texts)
    covariance = square / len(texts) - np.outer(mean, mean)
    dims = min(dims, len(mean), max(len(texts) - 1, 1))
    _, axes = eigh(covariance, subset_by_index=[len(mean) - dims, len(mean) - 1])
    axes = axes[:, ::-1]  # leading first
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(dims)])
    return mean.astype(np.float32), axes.astype(np.float32)


class Fisher(GloveEncoder):
    """Fisher vector of means and variances of a text's words, square root, length 1, PCA.

    Everything is fitted on training texts. A text without a known word has Fisher vector 0.

    Args:    components: Gaussians (paper: 30); dims: numbers kept by PCA, at most 2 * components
             * 50 and fewer than training texts.
    Shape:   encode: T texts -> (T, dims) float32.
    """

    name, version, learns = "fisher", 1, True
    threaded = False  # the limit of one thread holds for a whole process
    fit_words, parts_of = staticmethod(fit_mixture), staticmethod(word_parts)

    def __init__(self, device: str = "cpu", components: int = 30, dims: int = 1000) -> None:
        check_number("components", components, least=1)
        check_number("dims", dims, least=1)
        self.settings = {"components": components, "dims": dims, "vectors": "glove.6B.50d",
                         "seed": SEED, "sample": SAMPLE}
        self._fitted: dict[str, np.ndarray] = {}

    def fit(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Fit the mixture, arrays as `parts_of` takes them, then PCA (mean, axes)."""
        mixture = self.fit_words(texts, self.settings["components"])
        with threadpool_limits(1):
            mean, axes = fit_pca(lambda part: fisher_vectors(part, self.parts_of, **mixture), texts,
                                 self.settings["dims"])
        self._fitted = mixture | {"mean": mean, "axes": axes}
        return self._fitted

    def load(self, fitted: dict[str, np.ndarray]) -> None:
        """Take what `fit` returned."""
        self._fitted = fitted

    def encode(self, texts: list[str]) -> np.ndarray:
        """Encode texts, (T, dims) float32."""
        if not self._fitted:
            raise ValueError(f"{self.name} is not fitted; call fit(training texts) or load(...) "
                             "first")
        mixture = {k: v for k, v in self._fitted.items() if k not in ("mean", "axes")}
        with threadpool_limits(1):
            vectors = fisher_vectors(texts, self.parts_of, **mixture)
            return ((vectors - self._fitted["mean"]) @ self._fitted["axes"]).astype(np.float32)


class HybridFisher(Fisher):
    """The same of words turned by ICA, each number of a component Gaussian or Laplacian.

    Source: Klein et al., CVPR 2015, Sec. 4 (HGLMM); topk paper, Sec. IV-A-3.
    Bits:   in float64. Words that differ by 1e-10 have the same inner products of texts within 1e-6
            (Flickr8k: 2e-7). Words without groups, such as random vectors, may end elsewhere.
    """

    name = "hglmm"
    fit_words, parts_of = staticmethod(fit_hybrid), staticmethod(hybrid_parts)
