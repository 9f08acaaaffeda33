"""Metrics over all matches of a query, by sorting lists in Python."""


def order(scores, positives):
    """Items from best to worst; among equal scores what does not match comes first."""
    return sorted(range(len(scores)), key=lambda j: (-scores[j], j in positives))


def query_map_at_r(scores, positives, size=None):
    size, hits, total = size or len(positives), 0, 0.0
    for rank, item in enumerate(order(scores, positives)[:size], 1):
        if item in positives:
            hits += 1
            total += hits / rank
    return total / size


def query_r_precision(scores, positives, size=None):
    size = size or len(positives)
    return sum(item in positives for item in order(scores, positives)[:size]) / size


def query_recall_at(scores, positives, k):
    return float(any(item in positives for item in order(scores, positives)[:k]))


def both_directions(query_metric, ending):
    """oracle(scores, image_of_text) of a metric of one query."""
    def oracle(scores, image_of_text):
        images, texts = range(len(scores)), range(len(image_of_text))
        i2t = [query_metric(scores[i], {t for t in texts if image_of_text[t] == i}) for i in images]
        t2i = [query_metric([scores[i][t] for i in images], {image_of_text[t]}) for t in texts]
        return {f"i2t_{ending}": sum(i2t) / len(i2t), f"t2i_{ending}": sum(t2i) / len(t2i)}
    return oracle


def stable_order(scores):
    """Items from best to worst; among equal scores the lower index first."""
    return sorted(range(len(scores)), key=lambda j: -scores[j])
