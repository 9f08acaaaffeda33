"""CIDEr-D / 10 as coco-caption writes it: dictionaries and loops over one pair of texts."""

from collections import Counter
from math import exp, log, sqrt

from itr_study.data.vocabulary import tokenize


def grams(text):
    words = tokenize(text)
    return Counter(tuple(words[a:a + n]) for n in (1, 2, 3, 4) for a in range(len(words) - n + 1))


def document_frequency(texts, image_of_text):
    """(images that have each n-gram, number of images)"""
    found = Counter()
    for image in set(image_of_text):
        own = [t for t, i in zip(texts, image_of_text, strict=True) if i == image]
        found.update({gram for text in own for gram in grams(text)})
    return found, len(set(image_of_text))


def vector(text, frequency, images):
    vec, length = [{}, {}, {}, {}], 0
    for gram, count in grams(text).items():
        vec[len(gram) - 1][gram] = count * (log(images) - log(max(1, frequency[gram])))
        length += count if len(gram) == 2 else 0
    return vec, [sqrt(sum(v * v for v in part.values())) for part in vec], length


def oracle(candidate, reference, frequency, images, sigma=6.0):
    hyp, hyp_norm, hyp_length = vector(candidate, frequency, images)
    ref, ref_norm, ref_length = vector(reference, frequency, images)
    total = 0.0
    for n in range(4):
        value = sum(min(v, ref[n].get(gram, 0)) * ref[n].get(gram, 0)
                    for gram, v in hyp[n].items())
        if hyp_norm[n] and ref_norm[n]:
            value /= hyp_norm[n] * ref_norm[n]
        total += value * exp(-((hyp_length - ref_length) ** 2) / (2 * sigma**2))
    return total / 4
