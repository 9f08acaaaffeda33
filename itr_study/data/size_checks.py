"""Whether a split is large enough for its measures to mean anything."""

from itr_study.data.base import RetrievalDataset

FEWEST = 100  # images of dev and test: below, one image moves R@K by more than a point


def too_small(dataset: RetrievalDataset) -> list[str]:
    """A sentence for each split that measures models and has fewer than 100 images.

    Example:  of a test split with one image: "test has 1 image: R@10 is 100 % by chance, ..."
    """
    sentences = []
    for name, split in dataset.splits.items():
        count = len(split.image_ids)
        if name != "train" and count < FEWEST:
            chance, step = min(100, 1000 / count), 100 / count
            sentences.append(
                f"{name} has {count} image{'s' * (count != 1)}: R@10 is {chance:.0f} % by chance, "
                f"and one image more or less moves R@K by {step:.0f} points; give it {FEWEST} or "
                "more, or do not believe its numbers")
    return sentences
