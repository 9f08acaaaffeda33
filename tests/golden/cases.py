"""The numbers of a 5-step run of every part, computed now; `parts.json` holds those agreed on."""

import tempfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import normalize

from itr_study.data.batches import EncodedSplit, InputSpec
from itr_study.data.vocabulary import Vocabulary
from itr_study.encoders import IMAGE_ENCODERS, TEXT_ENCODERS
from itr_study.encoders.ngrams import Ngrams
from itr_study.evaluation import evaluate
from itr_study.features.dataset import TOKENS_VERSION
from itr_study.features.images import FrozenImages
from itr_study.features.specs import image_parts
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models import MODELS
from itr_study.models.base import ModelOutput
from itr_study.relevance import RELEVANCE
from itr_study.training import loop
from itr_study.training.objective import Objective, Term
from itr_study.training.settings import Settings
from tests.small import SmallData, SmallLoss, small_model, with_regions

STEPS, PAIRS, SIZE, HEADS = 5, 12, 8, 3
# Arguments of models beside their defaults that have numbers of their own.
VARIANTS = {"vsepp": ({"text": "bigru", "pool": "max", "size": 16},
                      {"pool": "both", "image_dropout": 0.2, "dropout": 0.2, "size": 16},
                      {"pool": "gpo", "region_dropout": 0.3, "size": 16},
                      {"text": "bigru", "word_dropout": 0.3, "text_size": 24, "image_hidden": 24,
                       "hidden_dropout": 0.5, "size": 16},
                      {"text": "transformer", "word_size": 8, "tuned": 1, "size": 16}),
            "two_branch": ({"text_layers": 1, "input_dropout": 0.2, "size": 16},),
            "vse_infinity": ({"size": 16, "image_hidden": 8, "text_size": 24, "text": "gru",
                              "region_dropout": 0.3, "dropout": 0.2, "image_dropout": 0.2},),
            "pvse": ({"heads": 3, "size": 16, "hidden": 8, "text": "gru", "dropout": 0.2,
                      "image_dropout": 0.2},),
            "dvse": ({"heads": 3, "size": 16, "hidden": 8, "text": "gru", "dropout": 0.2,
                      "image_dropout": 0.2}, {"heads": 4, "size": 16, "activation": "sigmoid",
                                              "mask": "off", "aggregate": "mean"},
                     {"heads": 0, "size": 16, "text_attention": False}),
            "saf": ({"size": 16, "similarity": 8, "region_dropout": 0.3, "image_dropout": 0.2},
                    {"size": 16, "similarity": 8, "text": "gru", "dropout": 0.2, "scale": 4.0}),
            "sgr": ({"size": 16, "similarity": 8, "region_dropout": 0.3, "steps": 2},
                    {"size": 16, "similarity": 8, "steps": 1, "word_dropout": 0.3}),
            "dan": ({"size": 16, "steps": 3, "region_dropout": 0.3, "image_dropout": 0.2},
                    {"size": 16, "text": "gru", "steps": 0, "dropout": 0.2, "word_dropout": 0.3})}
EDITIONS = {"vsepp": 3}  # of the cases of models; 1 where none is named
# A mixture of 30 from a few words would end elsewhere on another machine.
TEXT_ARGUMENTS = dict.fromkeys(("fisher", "hglmm"), {"components": 2, "dims": 20})
WORDS = """dog cat horse bird man woman boy girl child baby people crowd team player rider ball
bike car truck boat street road beach sand snow water river lake grass field park tree mountain
rock wall building house window red blue green white black yellow brown small large young old runs
jumps sits stands plays rides holds walks climbs swims smiles watches near behind under over"""
# Encoders whose weights the user brings, and label sources that ask a Java program: there is
# nothing to compute here.
BROUGHT = {"timm", "transformers", "clip", "meteor", "spice"}
LABEL_ARGUMENTS = {"sentence": ({}, {"pooling": "mean", "scale": "cosine"}, {"pooling": "pair"}),
                   "cider": ({}, {"pooling": "mean"}, {"pooling": "pair"})}
GIVEN_LABELS = {"clip", "features"}  # these read files of the user


def loss_numbers(name: str) -> list[float]:
    """Values of a loss over 5 steps of gradient descent on codes, in float64."""
    torch.manual_seed(0)
    loss = (LOSSES | OUTPUT_LOSSES)[name]()
    images = torch.randn(PAIRS, HEADS, SIZE, dtype=torch.float64, requires_grad=True)
    texts = torch.randn(PAIRS, SIZE, dtype=torch.float64, requires_grad=True)
    relevance = {"binary": torch.zeros(PAIRS, PAIRS), "unit": torch.rand(PAIRS, PAIRS),
                 "cosine": 2 * torch.rand(PAIRS, PAIRS) - 1}[loss.relevance_scale].double()
    relevance = relevance.clamp(max=0.99).fill_diagonal_(1.0)
    if name == "structure":  # which has nothing to say without texts of one image
        relevance[torch.arange(0, PAIRS, 2), torch.arange(1, PAIRS, 2)] = 1.0
    optimizer = torch.optim.SGD([images, texts], lr=1.0)
    values = []
    for _ in range(STEPS):
        heads = torch.einsum("ikd,td->kit", normalize(images, dim=2), normalize(texts, dim=1))
        output = ModelOutput(heads.amax(dim=0), head_scores=heads,
                             subembeddings=normalize(images, dim=2), residuals=images,
                             mask=torch.ones(PAIRS, HEADS, dtype=torch.float64),
                             text_subembeddings=normalize(texts, dim=1)[:, None],
                             text_vectors=texts, joined_vectors=images[:, 0],
                             joined_scores=heads[0])
        value = loss(output if name in OUTPUT_LOSSES else output.scores, relevance)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    return values


def model_numbers(name: str) -> list[float]:
    """Losses of 5 steps of training, with default arguments and with each variant; those that
    leave out regions get several a picture."""
    train = SmallData().splits["train"]
    train.sentences = np.random.default_rng(0).normal(size=(train.n_texts, 5)).astype(np.float32)
    values = []
    for arguments in ({}, *VARIANTS.get(name, ())):
        torch.manual_seed(0)
        model = MODELS[name](InputSpec(6, 20, 5), **arguments).train()
        several = {"region_dropout", "heads"} & set(arguments)
        split = with_regions(train) if several else train
        objective = Objective([Term("triplet_sum")])
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for step in range(STEPS):
            texts = np.arange(step * PAIRS, (step + 1) * PAIRS)
            batch = split.pair_batch(texts, texts % 2)
            loss, _ = objective(loop.forward(model, batch), batch, split)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            values.append(loss.item())
    return values


def loop_numbers() -> list[float]:
    """Losses and dev RSUM of two epochs for each optimiser and schedule."""
    values = []
    for optimizer, schedule in (("adamw", "constant"), ("adam", "cosine"), ("sgd", "exponential"),
                                ("adamw", "step")):
        settings = Settings(epochs=2, batch_size=16, optimizer=optimizer, schedule=schedule,
                            learning_rate=0.02, weight_decay=0.01, warmup_steps=2, decay_epochs=1,
                            learning_rate_factors={"image": 0.5})
        rows = loop.fit(small_model(), SmallLoss(), SmallData(), settings, seed=1).rows
        values += [row[name] for row in rows for name in ("loss", "score_std", "dev_rsum")]
    return values


def evaluation_numbers() -> list[float]:
    """The whole table of a small split."""
    return list(evaluate.evaluate(small_model(), SmallData().splits["test"]).table.values())


def labelled_split() -> EncodedSplit:
    """A small split with graded relevance and label vectors."""
    random = np.random.default_rng(0)
    split = SmallData().splits["train"]
    graded = random.random((split.n_images, split.n_texts), np.float32)
    texts = [" ".join(random.choice(WORDS.split()[:20], 8)) for _ in range(split.n_texts)]
    vectors = {"minilm": random.normal(size=(split.n_texts, 384)).astype(np.float32),
               "cider": Ngrams().fit(texts, split.image_of_text).encode(texts)}
    return EncodedSplit("train", split.image_of_text, split.regions, tokens=split.tokens,
                        relevance=graded, label_vectors=vectors)


def label_numbers(name: str) -> list[float]:
    """Sum, and sums of rows, of the labels of one batch, with each way over the captions."""
    split, values = labelled_split(), []
    with tempfile.TemporaryDirectory() as folder:
        random = np.random.default_rng(1)
        for what, rows in (("images", split.n_images), ("texts", split.n_texts)):
            np.save(f"{folder}/train_{what}.npy", random.normal(size=(rows, 16)))
        for arguments in LABEL_ARGUMENTS.get(name, ({},)):
            if name in GIVEN_LABELS:
                arguments = {"folder": folder}
            labels = RELEVANCE[name](**arguments)(split.pair_batch(np.arange(0, 30, 2)), split)
            values += [labels.sum().item(), *labels.double().sum(dim=1).tolist()]
    return values


def picture() -> Image.Image:
    """A picture of bands and a gradient."""
    y, x = np.mgrid[0:300, 0:260]
    return Image.fromarray(np.stack([x % 256, (y * 2) % 256, (x * y) // 64 % 256],
                                    axis=2).astype(np.uint8))


def image_encoder_numbers(name: str) -> list[float]:
    """Mean and spread of one picture's features, and the features in groups; in float32, which
    all CPUs compute alike (half precision has a test of its own)."""
    (part,) = image_parts(f"{name}:pooled:flip:float32")
    features = FrozenImages(part).encode([picture()]).ravel()
    return [float(features.mean()), float(features.std()), *grouped(features)]


def text_encoder_numbers(name: str) -> list[float]:
    """Spread and product of the vectors of two sentences, fitted on a few more; the vectors."""
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(WORDS.split(), 8)) for _ in range(60)]
    encoder = TEXT_ENCODERS[name](**TEXT_ARGUMENTS.get(name, {}))
    encoder.load(encoder.fit(texts))
    vectors = encoder.encode(["a dog runs on the grass", "two children play"])
    return [float(vectors.std()), float(vectors[0] @ vectors[1]), *grouped(vectors.ravel())]


def grouped(vector: np.ndarray) -> list[float]:
    """Mean sizes of the numbers in at most 64 groups: each number counts, but not its sign, which
    a PCA leaves open."""
    return [float(group.mean()) for group in np.array_split(np.abs(vector), min(64, len(vector)))]


def token_numbers() -> list[float]:
    """Ids of the words of a text, with one unknown, after fitting on a few texts."""
    vocabulary = Vocabulary.fit(["A dog, a cat!", "the dog's ball", "A cat on the mat"],
                                min_count=2)
    return [len(vocabulary), *map(float, vocabulary.encode("The DOG chases a cat"))]


class Part(NamedTuple):
    """A part of a given version, and the case that makes its numbers.

    A case has an edition of its own: it is raised where other numbers are computed of a part that
    stays what it was, so that no committed row becomes stale for it.
    """

    version: int
    compute: Callable[[], list[float]]
    edition: int = 1


def parts() -> dict[str, Part]:
    """Name of every part -> its version, its case, and the edition of that."""
    found = {f"loss:{n}": Part(c.version, lambda n=n: loss_numbers(n))
             for n, c in (LOSSES | OUTPUT_LOSSES).items()}
    found |= {f"model:{n}": Part(c.version, lambda n=n: model_numbers(n), EDITIONS.get(n, 1))
              for n, c in MODELS.items()}
    found |= {f"labels:{n}": Part(c.version, lambda n=n: label_numbers(n))
              for n, c in RELEVANCE.items() if n not in BROUGHT}
    found |= {f"image:{n}": Part(c.version, lambda n=n: image_encoder_numbers(n), 2)
              for n, c in IMAGE_ENCODERS.items() if n not in BROUGHT}
    found |= {f"text:{n}": Part(c.version, lambda n=n: text_encoder_numbers(n), 2)
              for n, c in TEXT_ENCODERS.items() if n not in BROUGHT}
    return found | {"tokens": Part(TOKENS_VERSION, token_numbers),
                    "loop": Part(loop.VERSION, loop_numbers),
                    "evaluation": Part(evaluate.VERSION, evaluation_numbers)}
