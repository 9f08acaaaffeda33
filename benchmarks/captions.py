"""How well are exchanged captions found? Average precision, by the audit and by two baselines.

    python benchmarks/captions.py [--shares 5 20 40] [--seeds 5] [--train 1000] [--net]
    python benchmarks/captions.py --data DATA [--train 6000] [--seeds 2]      # Flickr8k

Some captions of the training pictures are given to other pictures (`data/caption_noise.py`). On
`scenes` one that holds there as well, by the exact relevance, is not wrong. Every method orders all
captions; 100 is a perfect order, and an order by chance has the share of wrong captions. Baselines:
the hinges of a caption in one two_branch after its training on all pairs, and the distance of a
caption to the mean of the other captions of its picture. --net takes two_branch instead of CCA.
"""

import argparse
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn.functional import normalize  # noqa: E402

import itr_study as itr  # noqa: E402
from itr_study.data.batches import EncodedSplit, InputSpec  # noqa: E402
from itr_study.data.caption_noise import as_true, shuffled_owners  # noqa: E402
from itr_study.features.texts import EncodedData  # noqa: E402
from itr_study.lab.label_quality import audit  # noqa: E402

SENTENCES = "minilm"
FIRST_SEED = 10  # the settings of the audit were chosen on the scenes of seeds 0 and 1


def average_precision(doubt: np.ndarray, wrong: np.ndarray) -> float:
    """Mean, over the wrong ones, of the share of wrong ones down to there, in percent."""
    hits = wrong[np.argsort(-doubt, kind="stable")]
    return 100 * float((hits.cumsum() / np.arange(1, len(hits) + 1))[hits].mean())


def train_net(images: Tensor, texts: Tensor, owner: np.ndarray, epochs: int = 10,
              hidden: int = 256) -> tuple[torch.nn.Module, EncodedSplit]:
    """A two_branch on these pairs, by the sum of hinges."""
    split = EncodedSplit("train", owner, images.numpy()[:, None, None].astype(np.float32),
                         sentences=texts.numpy().astype(np.float32))
    data = EncodedData({"train": split}, InputSpec(images.shape[1], 0, texts.shape[1]), "none")
    torch.manual_seed(0)
    model = itr.MODELS["two_branch"](data.inputs, size=hidden, hidden=hidden, text_layers=1,
                                     input_dropout=0.2)
    itr.fit(model, "triplet_sum", data, itr.Settings(
        epochs=epochs, learning_rate=1e-3, weight_decay=0.01, select="last", schedule="cosine"))
    return model, split


def score_net(model: torch.nn.Module, images: Tensor, texts: Tensor) -> Tensor:
    """Score images (I, P) with texts (T, Q): (I, T)."""
    with torch.no_grad():
        model.eval()
        return normalize(model.image(images), dim=1) @ normalize(model.text(texts), dim=1).T


def fit_net(images: Tensor, texts: Tensor):
    """One of the `fits` of `judge`; pairs of equal features are of one image."""
    _, first, owner = np.unique(images[:, :3].numpy(), axis=0, return_index=True,
                                return_inverse=True)
    model, _ = train_net(images[first], texts, owner.reshape(-1))
    return lambda some, others: score_net(model, some, others)


def final_loss(looks: Tensor, said: Tensor, owner: np.ndarray) -> np.ndarray:
    """The hinges of every caption in a model that trained on all of them, over both directions."""
    model, _ = train_net(looks, said, owner)
    scores = score_net(model, looks, said).numpy()
    columns = np.arange(len(owner))
    own = scores[owner, columns]
    loss = np.zeros(len(owner))
    for t in columns:
        others = owner != owner[t]
        loss[t] = (np.maximum(0.2 - own[t] + np.delete(scores[:, t], owner[t]), 0).mean()
                   + np.maximum(0.2 - own[t] + scores[owner[t], others], 0).mean())
    return loss


def distance(said: Tensor, owner: np.ndarray) -> np.ndarray:
    """1 - cosine of a caption and the mean of the other captions of its picture."""
    where = torch.from_numpy(owner)
    total = torch.zeros(int(owner.max()) + 1, said.shape[1]).index_add_(0, where, said)
    return 1 - (normalize(total[where] - said, dim=1) * said).sum(dim=1).numpy()


def one(dataset, data, images: int, share: float, seed: int, net: bool) -> dict[str, float]:
    """The average precision of every method, and the seconds of the audit."""
    clean, split = dataset.splits["train"], data.splits["train"].head(images)
    texts = np.flatnonzero(clean.image_of_text < images)
    owner = shuffled_owners([clean.text_ids[t] for t in texts], split.image_of_text, share, seed)
    wrong = owner != split.image_of_text
    if dataset.relevance is not None:
        wrong &= ~as_true(dataset.relevance(clean)[owner, texts])
    looks, said = audit.arrays(EncodedData({"train": split}, data.inputs, data.key))
    start = time.perf_counter()
    twins, _ = audit.near_pictures(looks)
    judged = audit.judge(looks, said, owner, twins, **{"fits": [fit_net]} if net else {})
    seconds = time.perf_counter() - start
    found = {"audit": judged.doubt, "final loss": final_loss(looks, said, owner),
             "distance": distance(said, owner)}
    return {name: average_precision(doubt, wrong) for name, doubt in found.items()} | {
        "wrong %": 100 * float(wrong.mean()), "estimate %": 100 * judged.wrong / len(owner),
        "seconds": seconds}


def main() -> None:
    """Print a line for each share: means over seeds, and their standard deviation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shares", type=int, nargs="+", default=[5, 20, 40])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--data")
    parser.add_argument("--net", action="store_true")
    asked = parser.parse_args()
    for share in asked.shares:
        tables = []
        for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
            if asked.data:
                dataset = itr.load_dataset("flickr8k", asked.data)
            else:
                dataset = itr.load_dataset("scenes", train=asked.train, dev=2, test=2, seed=seed)
            data = itr.encode_dataset(dataset, tokens=None, sentences=SENTENCES)
            tables.append(one(dataset, data, asked.train, share / 100, seed, asked.net))
        print(f"{share:>3} %  " + "  ".join(
            f"{name} {np.mean(values):.1f} ± {np.std(values, ddof=len(values) > 1):.1f}"
            for name in tables[0] for values in [[table[name] for table in tables]]), flush=True)


if __name__ == "__main__":
    main()
