"""The table of ECCV Caption, CxC and COCO from sorted rankings of ids, in loops."""

from tests.oracles.sets import query_map_at_r, query_r_precision, query_recall_at


def rankings(scores, image_ids, text_ids):
    """For both directions {query id: {item id: score}}."""
    i2t = {i: dict(zip(text_ids, row, strict=True)) for i, row in zip(image_ids, scores,
                                                                      strict=True)}
    t2i = {t: {i: i2t[i][t] for i in image_ids} for t in text_ids}
    return {"i2t": i2t, "t2i": t2i}


def mean_of(metric, ranking, judged, gallery=None, *rest):
    """Mean over the queries of one ground truth, within a part of the gallery."""
    values = []
    for query, items in judged.items():
        ids = [i for i in ranking[query] if gallery is None or i in gallery]
        positives = {place for place, i in enumerate(ids) if i in items}
        values.append(metric([ranking[query][i] for i in ids], positives, *rest))
    return sum(values) / len(values)


def with_size(metric, ranking, judged):
    """Mean of a metric that counts matches outside the gallery in R."""
    return sum(mean_of(metric, ranking, {query: items}, None, len(set(items)))
               for query, items in judged.items()) / len(judged)


def oracle(scores, image_ids, text_ids, sets, ks=(1, 5, 10)):
    ranking, table = rankings(scores, image_ids, text_ids), {}
    size = len(sets.order) // 5
    folds = [[int(t) for t in sets.order[a:a + size]] for a in range(0, len(sets.order), size)]
    for d in ("i2t", "t2i"):
        for k in ks:
            table[f"{d}_coco1k_r{k}"] = 0.0
            for texts in folds:
                images = {sets.coco.t2i[t][0] for t in texts}
                queries, gallery = (images, texts) if d == "i2t" else (texts, images)
                judged = {q: getattr(sets.coco, d)[q] for q in queries}
                value = mean_of(query_recall_at, ranking[d], judged, set(gallery), k)
                table[f"{d}_coco1k_r{k}"] += value / 5
            for name, judged in (("coco5k", sets.coco), ("cxc", sets.cxc)):
                table[f"{d}_{name}_r{k}"] = mean_of(
                    query_recall_at, ranking[d], getattr(judged, d), None, k)
        eccv = getattr(sets.eccv, d)
        table[f"{d}_eccv_map_at_r"] = with_size(query_map_at_r, ranking[d], eccv)
        table[f"{d}_eccv_r_precision"] = with_size(query_r_precision, ranking[d], eccv)
        table[f"{d}_eccv_r1"] = mean_of(query_recall_at, ranking[d], eccv, None, 1)
    return table
