"""Small ground truths in the shape of COCO, CxC and ECCV Caption, and cuts of the real ones."""

import numpy as np

from itr_study.metrics.eccv import ABSENT, Judged, TruthSets


def turned(i2t):
    """caption -> images of image -> captions."""
    t2i = {}
    for image, texts in i2t.items():
        for text in texts:
            t2i.setdefault(text, []).append(image)
    return t2i


def small_sets(seed=0, images=15, texts=3):
    """(image ids, caption ids, ground truths): ids in no order, some queries judged by one only."""
    rng = np.random.default_rng(seed)
    image_ids = [int(i) for i in rng.choice(9000, images, replace=False)]
    text_ids = [int(i) for i in rng.choice(90000, images * texts, replace=False)]
    coco = {image: text_ids[a * texts:(a + 1) * texts] for a, image in enumerate(image_ids)}
    cxc = {i: own + rng.choice(text_ids, 2).tolist() for i, own in list(coco.items())[1:]}
    eccv = {i: rng.choice(text_ids, 6, replace=False).tolist() for i in image_ids[::3]}
    eccv[image_ids[0]].append(min(ABSENT))
    found = {t: i for t, i in turned(eccv).items() if t not in ABSENT}
    sets = TruthSets(Judged(coco, turned(coco)), Judged(cxc, turned(cxc)), Judged(eccv, found),
                     np.array(text_ids))
    return image_ids, text_ids, sets


def cut(sets, keep):
    """The ground truths of some images and their captions, and of nothing else."""
    texts = {t for i in keep for t in sets.coco.i2t[i]}

    def part(of, queries, items):
        lists = {q: [i for i in x if i in items] for q, x in of.items() if q in queries}
        return {q: x for q, x in lists.items() if x}

    def judged(of):
        return Judged(part(of.i2t, keep, texts | ABSENT), part(of.t2i, texts, keep))

    order = np.array([t for t in sets.order.tolist() if t in texts])
    return TruthSets(judged(sets.coco), judged(sets.cxc), judged(sets.eccv), order)
